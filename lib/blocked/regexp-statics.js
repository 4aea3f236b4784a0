'use strict'

// A report from inside of a run uses regular expressions, and the program may be just about to read RegExp.$1. What RegExp
// tells of the last match is therefore put back, by a match that tells the same.

const GROUPS = 9

/** @typedef {{ input: string, match: string, at: number, groups: string[], last: string }} Last */

/** @param {() => void} work */
function keepingMatches (work) {
  const before = lastMatch()
  try {
    work()
  } finally {
    if (before !== undefined) putBack(before)
  }
}

/** @returns {Last | undefined} */
function lastMatch () {
  try {
    const all = /** @type {any} */ (RegExp)
    const groups = []
    for (let i = 1; i <= GROUPS; i++) groups.push(String(all[`$${i}`]))
    return { input: String(all.input), match: String(all.lastMatch), at: String(all.leftContext).length, groups, last: String(all.lastParen) }
  } catch {
    return undefined // somebody replaced them
  }
}

/** @param {Last} before */
function putBack ({ input, match, at, groups, last }) {
  try {
    const wanted = groups.slice(0, 1 + groups.findLastIndex((group) => group !== ''))
    if ((wanted.at(-1) ?? '') !== last || wanted.length === GROUPS) wanted.push(last)
    const captures = wanted.map((group) => `(?=[^]{${Math.max(0, input.indexOf(group))}}([^]{${group.length}}))`).join('')
    new RegExp(`(?<=^${captures}[^]{${at}})[^]{${match.length}}`).exec(input)
  } catch {}
}

module.exports = { keepingMatches }
