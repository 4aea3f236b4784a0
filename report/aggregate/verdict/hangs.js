'use strict'

// Requests that are pending for long. What they wait for is known from black boxes and recordings.

const { shortFrame } = require('../../../lib/text')
const { groupsOf } = require('../lists')

const MIN_MS = 5000
const MAX_NAMED = 3
const RECENT_MS = 1000 // since an error that ends the process

/** Place of an await in a text. @param {{ what: string }} pending */
const siteOf = ({ what }) => / at (.+)$/.exec(what)?.[1]

/**
 * Reports requests that have been pending for long, by what they wait for, if others of their route took less
 * than half as long. A box looks at what requests wait for once a second, between callbacks.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function hangs ({ model, death: { deaths }, waits: { cycles, convoys } }) {
  // The rules `deadlock` and `convoy` show more about these
  const known = new Set([...cycles.flatMap(({ members }) => members), ...convoys].map(({ at: site }) => site))
  const routes = model.routes.filter(({ kind }) => kind === 'SERVER')
  const served = new Map(routes.map((route) => [route.name, route]))
  const old = model.open.filter(({ name, kind, ms, startUnixMs, pending, responding, events }) =>
    kind === 'SERVER' && pending !== undefined && responding === undefined && ms >= MIN_MS &&
    !events.some(({ unixMs }) => unixMs >= startUnixMs + ms - RECENT_MS) &&
    !pending.some((wait) => known.has(siteOf(wait) ?? '')) &&
    (served.get(name)?.summary?.max ?? 0) < ms / 2)
  const groups = groupsOf(old, ({ name, pending = [], stopped }) =>
    JSON.stringify([name, pending.map(({ what }) => what), stopped === undefined]))
  return groups.sort((a, b) => b.length - a.length).slice(0, MAX_NAMED).map((group) => {
    const [{ name, pending = [], stopped, idle }] = group
    const ms = group.reduce((sum, one) => sum + one.ms, 0)
    const sites = pending.flatMap((wait) => siteOf(wait) ?? [])
    return {
      rule: /** @type {const} */ ('hangs'),
      route: name,
      at: sites.at(0),
      lostMs: 0,
      share: ms / (ms + (served.get(name)?.totalMs ?? 0)),
      figures: { requests: group.length, oldestMs: Math.max(...group.map(({ ms }) => ms)) },
      details: {
        waits: pending.map(({ what }) => what.replace(/(?<= at ).+$/, shortFrame)),
        isUsing: sites.length < pending.length,
        stopped,
        idle,
        isCut: model.openCount > model.open.length,
        lives: deaths.length > 0 && deaths.every(({ lives }) => lives)
      }
    }
  })
}

module.exports = { hangs }
