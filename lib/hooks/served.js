'use strict'

const { ensureHeadroomToLoad } = require('../stacks/stack-headroom')

/** @type {typeof import('../requests/served-requests') | undefined} */
let loaded

/** Returns what notes the requests that servers get, loaded with the first of them. */
function servedRequests () {
  if (loaded === undefined) {
    ensureHeadroomToLoad()
    loaded = require('../requests/served-requests')
  }
  return loaded
}

/** Tracing is disabled. */
const disableServed = () => loaded?.disable()

module.exports = { disableServed, servedRequests }
