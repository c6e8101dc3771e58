// One session of the official JavaScript client, the same in Node and in a page: nine events, and the client's own report
// of a tenth that it refuses.
async function play(gameanalytics, key, secret) {
  const ga = gameanalytics.GameAnalytics
  const { EGAResourceFlowType, EGAProgressionStatus, EGAErrorSeverity, EGAAdAction, EGAAdType } = gameanalytics
  const seconds = number => new Promise(resolve => setTimeout(resolve, 1000 * number))
  ga.configureBuild("1.2.3")
  ga.configureUserId("ann")
  ga.configureAvailableResourceCurrencies(["gems"])
  ga.configureAvailableResourceItemTypes(["boost"])
  ga.initialize(key, secret)
  await seconds(3)
  ga.addBusinessEvent("USD", 499, "pack", "gold", "shop")
  ga.addResourceEvent(EGAResourceFlowType.Source, "gems", 40, "boost", "daily")
  ga.addProgressionEvent(EGAProgressionStatus.Start, "world1", "stage1")
  ga.addProgressionEvent(EGAProgressionStatus.Complete, "world1", "stage1", "", 1200)
  ga.addDesignEvent("tutorial:step1", 3.5)
  ga.addErrorEvent(EGAErrorSeverity.Warning, "texture is missing")
  ga.addAdEvent(EGAAdAction.Show, EGAAdType.RewardedVideo, "admob", "end")
  ga.addBusinessEvent("DOLLAR", -1, "", "", "")
  await seconds(10)
  ga.endSession()
  await seconds(3)
  return ga.getRemoteConfigsValueAsString("speed", "none")
}

if (typeof module === "object") {
  const [client, key, secret] = process.argv.slice(2)
  play(require(client), key, secret).then(speed => { console.log(speed); process.exit(0) })
}
