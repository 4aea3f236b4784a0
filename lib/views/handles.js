'use strict'

// The report of everything that is open, equal ones grouped. Data in, string out.

/** @param {import('../handles/report').Why[]} list @returns {string} */
function summary (list) {
  if (list.length === 0) return 'longstack: nothing is open.'
  /** @type {Map<string, import('../handles/report').Why[]>} */
  const groups = new Map()
  for (const one of list) {
    const key = JSON.stringify([one.type, one.side, one.state, one.opened.map((hop) => [hop.type, hop.frames])])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  const parts = [...groups.values()].sort((a, b) => b.length - a.length).map((group) => {
    const [first] = group
    return (group.length > 1 ? `${group.length} × ` : '') + String(first)
  })
  return `longstack: ${list.length} open in process ${process.pid}\n\n${parts.join('\n\n')}\n`
}

module.exports = { summary }
