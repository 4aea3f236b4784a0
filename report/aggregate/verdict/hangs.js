'use strict'

// Requests that are pending for long. What they wait for is known from black boxes only.

const { shortFrame } = require('../../../lib/text')
const { groupsOf } = require('../lists')

const MIN_MS = 5000
const MAX_NAMED = 3

/**
 * Reports requests that have been pending for long, by what they wait for, if others of their route took less
 * than half as long. A box looks at what requests wait for once a second, between callbacks.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules: unanswered requests
 * @returns {import('./index').Fault[]}
 */
function hangs ({ model, death }, faults) {
  const known = new Set(faults.flatMap(({ rule, route }) => rule === 'unanswered' ? route : []))
  const routes = model.routes.filter(({ kind }) => kind === 'SERVER')
  const served = new Map(routes.map((route) => [route.name, route]))
  const old = model.open.filter(({ name, kind, ms, pending, responding }) =>
    kind === 'SERVER' && pending !== undefined && responding === undefined && ms >= MIN_MS &&
    !known.has(name) && (served.get(name)?.summary?.max ?? 0) < ms / 2)
  const groups = groupsOf(old, ({ name, pending = [] }) => `${name} ${pending.map(({ what }) => what)}`)
  return groups.sort((a, b) => b.length - a.length).slice(0, MAX_NAMED).map((group) => {
    const [{ name, pending = [] }] = group
    const ms = group.reduce((sum, one) => sum + one.ms, 0)
    const sites = pending.flatMap(({ what }) => / at (.+)$/.exec(what)?.[1] ?? [])
    return {
      rule: /** @type {const} */ ('hangs'),
      route: name,
      at: sites.at(0),
      lostMs: 0,
      share: ms / (ms + (served.get(name)?.totalMs ?? 0)),
      figures: { requests: group.length, oldestMs: Math.max(...group.map(({ ms }) => ms)) },
      details: {
        waits: pending.map(({ what }) => what.replace(/(?<= at ).+$/, shortFrame)),
        lives: death.deaths.every(({ lives }) => lives)
      }
    }
  })
}

module.exports = { hangs }
