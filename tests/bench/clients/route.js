// Loaded before a client: connections to the collector's host go to a port of this machine, as a hosts file would do.
const net = require("net")

const connect = net.Socket.prototype.connect
net.Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0]
  if (options && options.host === "api.gameanalytics.com") {
    Object.assign(options, { host: "127.0.0.1", port: Number(process.env.COLLECTOR_PORT) })
  }
  return connect.apply(this, args)
}
