// What ipywidgets cannot do in a page: keys stay in the widget, a field with suggestions is a combobox, and buttons copy
// or insert code. Called with the root element of each view of a widget. Names from outside are set as text only.
root => {
    if (!root) return
    const list = document.createElement("ul")
    Object.assign(list, {id: `gamelens-list-${Math.random().toString(36).slice(2)}`, className: "gamelens-list"})
    list.setAttribute("role", "listbox")
    list.popover = "manual"
    root.append(list)
    let field = null, before = ""

    const isOpen = () => list.matches(":popover-open")
    const hide = () => {
        if (isOpen()) list.hidePopover()
        field.setAttribute("aria-expanded", "false")
        field.removeAttribute("aria-activedescendant")
    }
    const marked = () => list.querySelector("[aria-selected=true]")
    const mark = option => {
        marked()?.setAttribute("aria-selected", "false")
        option?.setAttribute("aria-selected", "true")
        option?.scrollIntoView({block: "nearest"})
        field.setAttribute("aria-activedescendant", option?.id ?? "")
    }
    const optionOf = (text, place) => {
        const [name, about] = text.split(" — "), option = document.createElement("li")
        option.id = `${list.id}-${place}`
        option.setAttribute("role", "option")
        option.dataset.text = text
        option.textContent = name
        if (about) option.append(Object.assign(document.createElement("small"), {textContent: about}))
        return option
    }
    const show = wanted => {
        const words = wanted.toLowerCase().split(/\s+/)
        const texts = [...document.getElementById(field.dataset.list).options].map(option => option.value)
        const has = text => words.every(word => text.toLowerCase().includes(word))
        const isNamed = text => has(text.split(" — ")[0])
        const found = [...texts.filter(isNamed), ...texts.filter(text => !isNamed(text) && has(text))]
        list.replaceChildren(...found.map(optionOf))
        if (!found.length) return hide()
        if (!isOpen()) list.showPopover()
        const place = field.getBoundingClientRect(), width = Math.min(440, innerWidth - 16)
        const isBelow = innerHeight - place.bottom > Math.min(240, place.top)
        Object.assign(list.style, {
            width: `${width}px`, left: `${Math.max(8, Math.min(place.left, innerWidth - width - 8))}px`,
            top: isBelow ? `${place.bottom}px` : "auto", bottom: isBelow ? "auto" : `${innerHeight - place.top}px`,
            maxHeight: `${Math.min(320, (isBelow ? innerHeight - place.bottom : place.top) - 8)}px`,
        })
        field.setAttribute("aria-expanded", "true")
        mark([...list.children].find(option => option.firstChild.data === before && !wanted) ?? list.firstChild)
    }
    const choose = option => {
        field.value = option.dataset.text
        field.dispatchEvent(new Event("change", {bubbles: true}))
        field.value = before = option.firstChild.data
        hide()
    }
    const adopt = input => {
        if (input.hasAttribute("list")) {
            input.dataset.list = input.getAttribute("list")
            input.removeAttribute("list")  // else the browser shows its own suggestions besides
            for (const [name, value] of Object.entries({
                role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false",
            })) input.setAttribute(name, value)
        }
        field = input
        before = input.value
        list.setAttribute("aria-label", `choices of ${input.labels?.[0]?.textContent}`)
        setTimeout(() => input.select())  // after the browser has put its cursor
    }
    const keys = {
        ArrowDown: () => isOpen() ? mark(marked()?.nextSibling ?? list.firstChild) : show(""),
        ArrowUp: () => isOpen() ? mark(marked()?.previousSibling ?? list.lastChild) : show(""),
        Enter: () => choose(marked()),
        Escape: () => { field.value = before; hide() },
    }
    const actions = {
        copy: async (_, code) => {
            await navigator.clipboard.writeText(code)
            return "Copied."
        },
        insert: async (button, code) => {
            const asked = new CustomEvent("gamelens:insert-cell", {bubbles: true, cancelable: true, detail: code})
            return button.dispatchEvent(asked) ? "This page cannot insert cells: copy the code instead." : "Inserted."
        },
    }

    root.addEventListener("focusin", ({target}) => {
        target.setAttribute("data-lm-suppress-shortcuts", "")  // by which the notebook leaves the keys to it
        if (target.matches("input[list], input[role=combobox]")) adopt(target)
    }, true)
    root.addEventListener("focusout", ({target}) => { if (target === field) hide() })
    root.addEventListener("input", ({target}) => { if (target === field) show(field.value) })
    root.addEventListener("keydown", event => {
        if (event.target !== field || event.isComposing || !keys[event.key]) return
        if (!isOpen() && !event.key.startsWith("Arrow")) return
        event.preventDefault()
        event.stopPropagation()
        keys[event.key]()
    }, true)
    list.addEventListener("mousedown", event => event.preventDefault())  // the field keeps the focus
    root.addEventListener("click", async ({target}) => {
        const option = target.closest("[role=option]"), button = target.closest("button[data-code]")
        if (option) choose(option)
        else if (target === field && !isOpen()) {
            field.select()
            show("")
        }
        else if (button) {
            const says = button.parentElement.querySelector("[role=status]")
            says.textContent = await actions[button.dataset.does](button, button.dataset.code)
                .catch(() => "This browser does not allow copying: click the code below to select it.")
        }
    })
}
