'use strict'

// A report from inside a callback uses regular expressions, and the program may be about to read RegExp.$1.
// So the statics of the last match are restored afterwards, by a match that sets the same ones.

const GROUPS = 9

/**
 * @typedef {{ input: string, match: string, index: number, groups: string[], lastParen: string }} LastMatch
 */

/** @param {() => void} work */
function preserveRegExpStatics (work) {
  const before = lastMatch()
  try {
    work()
  } finally {
    if (before !== undefined) restore(before)
  }
}

/** @returns {LastMatch | undefined} */
function lastMatch () {
  try {
    const statics = /** @type {any} */ (RegExp)
    const groups = []
    for (let i = 1; i <= GROUPS; i++) groups.push(String(statics[`$${i}`]))
    return {
      input: String(statics.input),
      match: String(statics.lastMatch),
      index: String(statics.leftContext).length,
      groups,
      lastParen: String(statics.lastParen)
    }
  } catch {
    return undefined // the program replaced them
  }
}

/** @param {LastMatch} before */
function restore ({ input, match, index, groups, lastParen }) {
  try {
    const texts = groups.slice(0, 1 + groups.findLastIndex((group) => group !== ''))
    if ((texts.at(-1) ?? '') !== lastParen || texts.length === GROUPS) texts.push(lastParen)
    const captures = texts.map((text) =>
      `(?=[^]{${Math.max(0, input.indexOf(text))}}([^]{${text.length}}))`).join('')
    new RegExp(`(?<=^${captures}[^]{${index}})[^]{${match.length}}`).exec(input)
  } catch {}
}

module.exports = { preserveRegExpStatics }
