// One session of one player, submitted by a game server with gameanalytics-node-sdk: 7 events.
const [client, key, secret] = process.argv.slice(2)
const GameAnalytics = require(client)

const seconds = number => new Promise(resolve => setTimeout(resolve, 1000 * number))

async function play() {
  const ga = new GameAnalytics({ key, secret, build: "1.2.3" })
  const ua = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0"
  await ga.sessionStart("bob", { ua, ip: "192.0.2.7", device: "iPhone15,2", manufacturer: "apple", session_num: 1 })
  ga.track("design", "bob", { event_id: "tutorial:step1" })
  ga.track("business", "bob", { event_id: "pack:gold", amount: 499, currency: "USD", transaction_num: 1 })
  ga.track("resource", "bob", { event_id: "Source:gems:boost:daily", amount: 40 })
  ga.track("progression", "bob", { event_id: "Start:world1:stage1" })
  ga.track("error", "bob", { severity: "warning", message: "texture is missing" })
  await seconds(1)
  await ga.sessionEnd("bob")
  await seconds(2)
}

play().then(() => process.exit(0))
