'use strict'

// The JSON of a critical path: its waits, own code on it and beside it. See span-json.js.

const { put, putMilliseconds, putNumber } = require('../encoding/bytes')
const { quote, stringify } = require('../encoding/json')

const MAX_SITES = 10 // of waits, and of own code, in one record
const MIN_MS = 0.0005 // below that a figure is zero, once rounded
const MIN_RANGE = 1 // ms, of a delay that is told as one
const MIN_SHARE = 1 / 100 // of the duration, of a part that is listed

/**
 * @typedef {import('./path-sites').Site} Site
 * @typedef {import('./wait-sites').SiteRun} SiteRun
 * @typedef {import('./wait-sites').SiteWait} SiteWait
 */

/** Puts the parts of a path, as members. @param {import('./span-figures').Figures} figures */
function putPath ({ duration, waits, ran, beside }) {
  put(',"longstack.waits":[')
  for (let i = 0; isListed(waits, i, duration); i++) putWait(waits[i], i)
  put(']')
  if (ran !== undefined) {
    put(',"longstack.ran":[')
    for (let i = 0; isListed(ran, i, duration); i++) putSiteRun(ran[i], i)
    put(']')
  }
  if (beside >= MIN_MS) {
    put(',"longstack.beside_ms":')
    putMilliseconds(beside)
  }
}

/**
 * Returns whether a part is listed: one of the worst, and not too small to matter.
 * @param {Array<{ ms: number, delayed?: number }>} parts worst first
 * @param {number} i
 * @param {number} duration ms
 */
function isListed (parts, i, duration) {
  if (i >= parts.length || i >= MAX_SITES) return false
  const { ms, delayed = 0 } = parts[i]
  return !(ms + delayed < duration * MIN_SHARE)
}

/** @param {SiteWait} wait @param {number} i */
function putWait (wait, i) {
  const { ms, count, delayed, delayedMax, site, until, unproven, on: connections } = wait
  put(i === 0 ? '{"ms":' : ',{"ms":')
  putMilliseconds(ms)
  put(',"count":')
  putNumber(count)
  if (delayed >= MIN_MS) {
    put(',"delayed":')
    putMilliseconds(delayed)
  }
  if (delayedMax - delayed >= MIN_RANGE) {
    put(',"delayed_max":')
    putMilliseconds(delayedMax)
  }
  put(siteJson(site))
  putOptional(',"until":', until)
  if (unproven) put(',"unproven":true')
  if (connections !== undefined) putConnections(connections)
  putQuestions(wait)
  put('}')
}

/** Puts whether it was a wait for an answer. @param {SiteWait} wait */
function putQuestions ({ sent, unsent, beside }) {
  if (sent > 0) {
    put(',"sent":')
    putNumber(sent)
  }
  if (unsent >= MIN_MS) {
    put(',"unsent":')
    putMilliseconds(unsent)
  }
  if (sent > 0 && beside > 0) {
    put(',"beside":')
    putNumber(beside)
  }
}

/** @param {number[]} connections asyncIds */
function putConnections (connections) {
  put(',"on":[')
  for (let i = 0; i < connections.length; i++) {
    if (i > 0) put(',')
    putNumber(connections[i])
  }
  put(']')
}

/** @param {SiteRun} run @param {number} i */
function putSiteRun ({ ms, count, site }, i) {
  put(i === 0 ? '{"ms":' : ',{"ms":')
  putMilliseconds(ms)
  put(',"count":')
  putNumber(count)
  put(siteJson(site))
  put('}')
}

/** Returns the members that a site is written as, each with a comma before it. @param {Site} site */
function siteJson (site) {
  if (site.json === undefined) {
    const { at: place, callers, label } = site
    const json = stringify({ at: place, callers, label })
    site.json = json === '{}' ? '' : `,${json.slice(1, -1)}`
  }
  return site.json
}

/** @param {string} key @param {string | undefined} value */
function putOptional (key, value) {
  if (value === undefined) return
  put(key)
  put(quote(value))
}

module.exports = { MIN_MS, MIN_RANGE, isListed, putOptional, putPath }
