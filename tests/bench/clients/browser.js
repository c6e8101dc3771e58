// As much of a browser as the official JavaScript client uses, for Node.
const https = require("https")

const stored = new Map()
globalThis.window = globalThis
globalThis.addEventListener = () => {}
globalThis.localStorage = {
  setItem: (key, value) => stored.set(key, String(value)),
  getItem: key => stored.get(key) ?? null,
  removeItem: key => stored.delete(key),
}
const navigator = { onLine: true, userAgent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0", appVersion: "5.0", platform: "Linux" }
Object.defineProperty(globalThis, "navigator", { configurable: true, value: navigator })
globalThis.XMLHttpRequest = class {
  headers = {}
  responseText = ""
  status = 0
  open(method, url) { Object.assign(this, { method, url }) }
  setRequestHeader(name, value) { this.headers[name] = value }
  finish() { this.readyState = 4; this.onreadystatechange?.() }
  send(body) {
    const request = https.request(this.url, { method: this.method, headers: this.headers }, answer => {
      this.status = answer.statusCode
      answer.on("data", part => { this.responseText += part })
      answer.on("end", () => this.finish())
    })
    request.on("error", () => this.finish())
    request.end(body)
  }
}
