// The extension for JupyterLab and Notebook 7, written by hand so that nothing has to be built: a module container with
// one module. Figures that we draw in the light theme follow a dark page, and widgets can insert a cell below their own.
const style = `
    body[data-jp-theme-light="false"] .js-plotly-plot:has(.main-svg[style*="rgb(255, 255, 255)"]):has(text[style*="Inter, "]) {
        filter: invert(0.93) hue-rotate(180deg)  /* lightness is turned round, hues stay */
    }`

async function insertBelow(app, notebook, index, code) {
    notebook.activeCellIndex = index
    await app.commands.execute("notebook:insert-cell-below")
    notebook.activeCell.model.sharedModel.setSource(code)
}

function activate(app) {
    document.head.append(Object.assign(document.createElement("style"), {textContent: style}))
    document.addEventListener("gamelens:insert-cell", event => {
        const notebook = app.shell.currentWidget?.content
        const index = notebook?.widgets?.findIndex(cell => cell.node.contains(event.target)) ?? -1
        if (index < 0 || !app.commands.hasCommand("notebook:insert-cell-below")) return
        event.preventDefault()  // the sign that somebody does it
        insertBelow(app, notebook, index, event.detail)
    })
}

(window._JUPYTERLAB ??= {}).gamelens = {
    init() {},
    async get() {
        return () => ({__esModule: true, default: {id: "gamelens:extension", autoStart: true, activate}})
    },
}
