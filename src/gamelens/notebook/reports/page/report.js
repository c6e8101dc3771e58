(async () => {
  const nonce = document.currentScript.nonce
  const packed = Uint8Array.from(atob(document.querySelector("script#plotly").textContent), letter => letter.charCodeAt(0))
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  const script = document.createElement("script")
  script.nonce = nonce
  script.textContent = await new Response(stream).text()
  document.head.append(script)
  for (const facts of document.querySelectorAll("script[data-figure]")) {
    const {data, layout} = JSON.parse(facts.textContent)
    await Plotly.newPlot(facts.previousElementSibling, data, layout, {displaylogo: false, responsive: true})
  }
})()
