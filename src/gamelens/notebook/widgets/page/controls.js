// Draws the parts of widgets, in every front end that takes an anywidget. Python says what a part shows, in traits that
// only it sets; what a person does goes back as a message. Texts from outside are set as text, never as markup: only a
// pane shows HTML, which is made and escaped in `html_blocks`.
const MOST_SHOWN = 200

const newId = kind => `gamelens-${kind}-${Math.random().toString(36).slice(2)}`

const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name)
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
    made.append(...children)
    return made
}

// Call *update* now, and whenever one of *names* changes, until the view is removed.
const follow = (model, names, update) => {
    const events = names.split(" ").map(name => `change:${name}`)
    update()
    for (const event of events) model.on(event, update)
    return () => { for (const event of events) model.off(event, update) }
}

const labelled = (text, field) => {
    field.id = newId("field")
    return element("div", {class: "gamelens-field"}, element("label", {for: field.id}, text), field)
}

const has = (text, words) => words.every(word => text.toLowerCase().includes(word))

const wordsOf = text => text.toLowerCase().split(/\s+/)

function button(model, el) {
    const made = element("button", {type: "button"})
    el.append(made)
    made.addEventListener("click", () => model.send({}))
    return follow(model, "description tooltip disabled", () => {
        made.textContent = model.get("description")
        made.title = model.get("tooltip") ?? ""
        made.disabled = model.get("disabled")
    })
}

function one(model, el) {
    const select = element("select")
    el.append(labelled(model.get("description"), select))
    select.addEventListener("change", () => {
        model.send({place: select.selectedIndex, label: select.value})
    })
    return follow(model, "labels place disabled", () => {
        const labels = model.get("labels")
        if ([...select.options].map(option => option.text).join("\n") !== labels.join("\n"))
            select.replaceChildren(...labels.map(label => element("option", {value: label}, label)))
        select.selectedIndex = model.get("place")
        select.disabled = model.get("disabled")
    })
}

// A combobox: what is typed narrows the list, arrow keys move in it, Enter picks, Escape leaves all as it was.
function search(model, el) {
    const id = newId("list")
    const list = element("ul", {id, class: "gamelens-list", role: "listbox", popover: "manual"})
    const field = element("input", {
        type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: "type to search",
        "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false",
    })
    list.setAttribute("aria-label", `choices of ${model.get("description")}`)
    el.append(labelled(model.get("description"), field), list)

    const picked = () => model.get("labels")[model.get("place")] ?? ""
    const isOpen = () => list.matches(":popover-open")
    const marked = () => list.querySelector("[aria-selected=true]")
    const mark = option => {
        marked()?.setAttribute("aria-selected", "false")
        option?.setAttribute("aria-selected", "true")
        option?.scrollIntoView({block: "nearest"})
        field.setAttribute("aria-activedescendant", option?.id ?? "")
    }
    const hide = () => {
        if (isOpen()) list.hidePopover()
        list.replaceChildren()
        field.setAttribute("aria-expanded", "false")
        field.removeAttribute("aria-activedescendant")
        field.value = picked()
    }
    const optionOf = place => {
        const option = element("li", {id: `${id}-${place}`, role: "option", "aria-selected": "false"})
        const about = model.get("abouts")[place]
        option.dataset.place = place
        option.append(model.get("labels")[place])
        if (about) option.append(element("small", {}, about))
        return option
    }
    const show = wanted => {
        const labels = model.get("labels"), abouts = model.get("abouts"), words = wordsOf(wanted)
        const places = [...labels.keys()]
        const isNamed = place => has(labels[place], words)
        const about = place => !isNamed(place) && has(`${labels[place]} ${abouts[place]}`, words)
        const found = [...places.filter(isNamed), ...places.filter(about)]
        list.replaceChildren(...found.slice(0, MOST_SHOWN).map(optionOf))
        if (!found.length) {
            if (isOpen()) list.hidePopover()
            field.setAttribute("aria-expanded", "false")
            return
        }
        if (!isOpen()) list.showPopover()
        const place = field.getBoundingClientRect(), width = Math.min(440, innerWidth - 16)
        const isBelow = innerHeight - place.bottom > Math.min(240, place.top)
        Object.assign(list.style, {
            width: `${width}px`, left: `${Math.max(8, Math.min(place.left, innerWidth - width - 8))}px`, right: "auto",
            top: isBelow ? `${place.bottom}px` : "auto", bottom: isBelow ? "auto" : `${innerHeight - place.top}px`,
            maxHeight: `${Math.min(320, (isBelow ? innerHeight - place.bottom : place.top) - 8)}px`,
        })
        field.setAttribute("aria-expanded", "true")
        const now = [...list.children].find(option => +option.dataset.place === model.get("place"))
        mark((!wanted && now) || list.firstChild)
    }
    const choose = option => {
        const place = +option.dataset.place
        model.send({place, label: model.get("labels")[place]})
        hide()
        field.value = model.get("labels")[place]
    }
    const keys = {
        ArrowDown: () => isOpen() ? mark(marked()?.nextSibling ?? list.firstChild) : show(""),
        ArrowUp: () => isOpen() ? mark(marked()?.previousSibling ?? list.lastChild) : show(""),
        Enter: () => choose(marked()),
        Escape: hide,
    }
    field.addEventListener("focus", () => setTimeout(() => field.select()))  // after the browser has put its cursor
    field.addEventListener("blur", hide)
    field.addEventListener("input", () => show(field.value))
    field.addEventListener("click", () => {
        if (isOpen()) return
        field.select()
        show("")
    })
    field.addEventListener("keydown", event => {
        if (event.isComposing || !keys[event.key] || !(isOpen() || event.key.startsWith("Arrow"))) return
        event.preventDefault()
        keys[event.key]()
    })
    list.addEventListener("mousedown", event => event.preventDefault())  // the field keeps the focus
    list.addEventListener("click", ({target}) => {
        const option = target.closest("[role=option]")
        if (option) choose(option)
    })
    return follow(model, "labels place disabled", () => {
        if (!isOpen()) field.value = picked()
        field.disabled = model.get("disabled")
    })
}

function several(model, el) {
    const name = model.get("description")
    const field = element("input", {type: "text", autocomplete: "off", spellcheck: "false"})
    const list = element("select", {multiple: "", size: 4, "aria-label": `pick ${name}`})
    el.append(labelled(name, field), list)
    el.classList.add("gamelens-several")
    let sent = null

    const fill = () => {
        const labels = model.get("labels"), picked = model.get("places"), words = wordsOf(field.value)
        const others = [...labels.keys()].filter(place => !picked.includes(place) && has(labels[place], words))
        const shown = [...picked, ...others.slice(0, Math.max(0, MOST_SHOWN - picked.length))]
        list.replaceChildren(...shown.map(place => {
            const option = element("option", {}, labels[place])
            option.dataset.place = place
            option.selected = picked.includes(place)
            return option
        }))
        const every = labels.length.toLocaleString("en")
        field.placeholder = !labels.length ? "nothing to pick from"
            : others.length + picked.length > MOST_SHOWN ? `${MOST_SHOWN} of ${every} below: search`
            : `all of ${every}: search, then pick`
    }
    field.addEventListener("input", fill)
    list.addEventListener("change", () => {
        const places = [...list.selectedOptions].map(option => +option.dataset.place)
        sent = places.join()
        model.send({places, labels: places.map(place => model.get("labels")[place])})
    })
    return follow(model, "labels places disabled", () => {
        // The list stays as it is under the pointer that picked from it.
        if (sent === null || sent !== model.get("places").join()) fill()
        sent = null
        field.disabled = list.disabled = model.get("disabled")
    })
}

function field(model, el) {
    const made = element("input", {type: "text", placeholder: model.get("placeholder"), autocomplete: "off"})
    el.append(labelled(model.get("description"), made))
    made.addEventListener("input", () => model.send({text: made.value}))
    return follow(model, "value disabled", () => {
        if (!made.matches(":focus")) made.value = model.get("value")
        made.disabled = model.get("disabled")
    })
}

function rows(model, el) {
    const list = element("ul", {class: "gamelens-rows"})
    el.append(list)
    return follow(model, "rows", () => {
        list.replaceChildren(...model.get("rows").map(({label, tooltip, tone, text}, place) => {
            const made = element("button", {type: "button", class: tone, title: tooltip}, label)
            made.addEventListener("click", () => model.send({place, label}))
            return element("li", {}, made, element("span", {}, text))
        }))
        list.hidden = !list.children.length
    })
}

function pane(model, el) {
    el.classList.add("gamelens-pane")
    return follow(model, "value is_stale", () => {
        if (el.dataset.shown !== model.get("value")) el.innerHTML = el.dataset.shown = model.get("value")
        el.classList.toggle("gamelens-stale", model.get("is_stale"))
    })
}

function code(model, el) {
    const copy = element("button", {type: "button"}, "Copy the code")
    const insert = element("button", {type: "button"}, "Insert cell below")
    const says = element("span", {role: "status"}), shown = element("pre")
    el.classList.add("gamelens-pane")
    el.append(element("div", {}, copy, " ", insert, " ", says), shown)
    copy.addEventListener("click", async () => {
        says.textContent = await navigator.clipboard.writeText(model.get("value")).then(
            () => "Copied.", () => "This browser does not allow copying: click the code below to select it.",
        )
    })
    insert.addEventListener("click", () => {  // our extension for JupyterLab and Notebook 7 answers
        const detail = model.get("value")
        const asked = new CustomEvent("gamelens:insert-cell", {bubbles: true, cancelable: true, composed: true, detail})
        const isDone = !insert.dispatchEvent(asked)
        says.textContent = isDone ? "Inserted." : "This page cannot insert cells: copy the code instead."
    })
    return follow(model, "value", () => {
        shown.textContent = model.get("value")
        el.hidden = !model.get("value")
    })
}

const kinds = {button, one, search, several, field, rows, pane, code}

function render({model, el}) {
    el.classList.add("gamelens-control")
    // Keys that are typed here are none of the notebook: JupyterLab leaves those alone whose target says so.
    el.addEventListener("focusin", ({target}) => target.setAttribute("data-lm-suppress-shortcuts", ""))
    el.addEventListener("keydown", event => {
        if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation()
    })
    return kinds[model.get("kind")](model, el)
}

export default {render}
