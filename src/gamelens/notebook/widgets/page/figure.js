// Below plotly.js, whose names are in `module.exports`: draws the figure of a part, and the next one when it comes.
const drawFigure = (model, el) => {
    const place = document.createElement("div")
    el.append(place)
    let drawn = Promise.resolve()
    const draw = () => {
        const figure = JSON.parse(model.get("value"))
        place.hidden = figure === null
        // One after the other, since drawing takes a while and the next figure may come before that.
        if (figure) drawn = drawn.then(() => module.exports.react(place, figure.data, figure.layout, figure.config))
    }
    draw()
    model.on("change:value", draw)
    return () => {
        model.off("change:value", draw)
        drawn.then(() => module.exports.purge(place))
    }
}

export default {render: ({model, el}) => drawFigure(model, el)}
