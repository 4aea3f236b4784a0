'use strict'

// Reports from inside a callback use regular expressions, and so may listeners. The program may be about to
// read RegExp.$1, so the statics of its last match are restored afterwards, by a match that sets the same
// values. The program may also be in the middle of a match.

const GROUPS = 9
const hasVectorForEach = Number(process.versions.v8.split('.', 1)[0]) >= 13

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
    return undefined // the program has replaced them
  }
}

/** Restores the statics, in time linear in the length of the match. @param {LastMatch} before */
function restore ({ input, match, index, groups, lastParen }) {
  try {
    const texts = groups.slice(0, 1 + groups.findLastIndex((group) => group !== ''))
    if ((texts.at(-1) ?? '') !== lastParen || texts.length === GROUPS) texts.push(lastParen)
    const captures = texts.map((text) => captureOf(text, input, index)).join('')
    const expression = new RegExp(`${captures}[^]{${match.length}}`, 'y') // sticky: no search
    expression.lastIndex = index
    expression.exec(input)
  } catch {}
}

/**
 * Returns an assertion that captures a text of the input.
 * @param {string} text
 * @param {string} input
 * @param {number} index position of the assertion
 */
function captureOf (text, input, index) {
  const group = `([^]{${text.length}})`
  const after = input.indexOf(text, index)
  if (after !== -1) return `(?=[^]{${after - index}}${group})`
  return `(?<=(?=${group})[^]{${index - Math.max(0, input.lastIndexOf(text, index))}})`
}

/**
 * Returns whether V8 may be about to use data that another match would overwrite. A global match keeps its
 * results in an array of the isolate while machine code continues with the next of them, and V8 before
 * version 13 has one such array for all matches (jsregexp_static_offsets_vector in src/execution/isolate.h;
 * since then RegExpResultVectorScope, src/regexp/regexp.h). Only these built-ins match this way; an
 * interrupted one is the innermost frame.
 * @param {string} frames as printed, innermost first
 */
function isInGlobalMatch (frames) {
  if (hasVectorForEach) return false
  const end = frames.indexOf('\n')
  const innermost = end === -1 ? frames : frames.slice(0, end)
  return innermost.endsWith('(<anonymous>)') && (innermost.includes('replace') || innermost.includes('match'))
}

module.exports = { isInGlobalMatch, preserveRegExpStatics }
