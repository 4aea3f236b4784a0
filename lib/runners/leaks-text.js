'use strict'

// What a gate says: "test 'saves' left 1 TCP connection, opened at connect (db.js:3)", and what opened it.

const { groupBy } = require('../group-by')
const { listText, madeNotOpened, printed } = require('../format/handles')
const { baseName } = require('../stacks/text-scan')
const { clean } = require('../text')

/**
 * @typedef {import('../handles/why').Why} Why
 * @typedef {{ owner: string, why: Why }} Leak owner: the test or file that is blamed
 */

const MAX_KINDS = 5 // named of an owner

/** @param {Leak[]} leaks @returns {string} */
function leaksText (leaks) {
  return groupBy(leaks, ({ owner }) => owner).map((group) => {
    const reports = group.map(({ why }) => why)
    return `${group[0].owner} left ${kindsOf(reports)}\n\n${listText(reports)}`
  }).join('\n\n')
}

/** @param {Why[]} reports @returns {string} how many of which kind were opened where */
function kindsOf (reports) {
  const opened = reports.map((why) => ({ noun: printed.read(why)?.noun ?? why.what, place: placeOf(why) }))
  const kinds = groupBy(opened, ({ noun, place }) => `${noun} ${place}`)
  const texts = kinds.map((kind) => `${kind.length} ${plural(kind[0].noun, kind.length)}${kind[0].place}`)
  const more = texts.length - MAX_KINDS
  return texts.slice(0, MAX_KINDS).join(' and ') + (more > 0 ? ` and ${more} more kinds` : '')
}

/** @param {Why} why @returns {string} the innermost frame of the user's own code, else of a module */
function placeOf ({ opened, type }) {
  const frames = opened.flatMap((hop) => hop.frames)
  const frame = frames.find(({ kind }) => kind === 'user') ?? frames.find(({ kind }) => kind === 'module')
  if (frame?.fileName === undefined) return ''
  const position = `${baseName(frame.fileName)}:${frame.lineNumber}`
  const { functionName } = frame
  const place = clean(functionName === undefined ? position : `${functionName} (${position})`)
  return `, ${madeNotOpened.test(type) ? 'made' : 'opened'} at ${place}`
}

/** @param {string} noun @param {number} count */
function plural (noun, count) {
  if (count === 1) return noun
  return /(s|ch|x)$/.test(noun) ? `${noun}es` : `${noun}s`
}

module.exports = { leaksText }
