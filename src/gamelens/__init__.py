"""gamelens: game metrics as honest DataFrames."""
