'use strict'

// The scope: with the option of this name, only what it selects gets stacks. A step is inside of it or
// outside, as the step that made it is. Outside, nothing is captured and no clock is read: the chain of a
// step is a number that says no more than the kind of its resource. A request enters the scope where Node
// reports it (served-requests.js), a function where trace.scope calls it (run-in-scope.js). A file enters it
// with each step that is made while a function of it is on the stack: that takes a look at the stack of all
// steps, since neither V8 nor Node reports that a function is called.
//
// Without a scope nothing of this is called in a hook: `around` is installed when the option is set.

const { resolve } = require('node:path')
const { CHAIN_BITS, FIRST_CHAIN, OUTSIDE_CHAIN, ROOT_CHAIN } = require('./record-words')
const { readClock } = require('./clock')
const { ChainValues } = require('./chain-values')
const { source } = require('./source')
const { isObject, own } = require('../objects')
const { messageOf, warn } = require('../warnings')

/**
 * @typedef {import('../stacks/capture').Engine} Engine
 * @typedef {NonNullable<import('../option-types').Options['scope']>} Scope
 * @typedef {(names: (name: string) => unknown, request: object | undefined) => boolean} Matcher
 *   names: returns the value of a header; request: undefined for one of HTTP/2
 */

/** number of the first chain inside: those below are of before the scope was set */
let firstInside = FIRST_CHAIN
/** the next step enters the scope */
let isEntering = false
/** undefined: there is no scope @type {Scope | undefined} */
let option
/** whether a request is inside @type {Matcher} */
let matches = () => false
let requestCount = 0
/** tells the files of the scope @type {RegExp | undefined} */
let files
/** whether a stack has one of them, by the chain that it has alone */
const fileNotes = new ChainValues()
const NO = 1
const YES = 2

/** Returns whether there is a scope, and a chain is of a step outside. @param {number} chain */
const isOutside = (chain) => chain >= OUTSIDE_CHAIN

/** @param {number} chain @returns {boolean} */
const isInside = (chain) => chain >= firstInside && chain < OUTSIDE_CHAIN

/**
 * Returns an engine's `step` and `intern` that capture inside of the scope alone.
 * @param {Pick<Engine, 'step' | 'intern'>} engine
 * @returns {Pick<Engine, 'step' | 'intern'>}
 */
function around ({ step, intern }) {
  return {
    step (parent, kind, outermost) {
      if (parent >= firstInside && parent < OUTSIDE_CHAIN) return step(parent, kind, outermost)
      if (!isEntering && files === undefined) return OUTSIDE_CHAIN + kind
      const chain = step(ROOT_CHAIN, kind, outermost)
      if (!isEntering && !isOfFile(chain)) return OUTSIDE_CHAIN + kind
      isEntering = false
      return chain
    },

    intern: (parent, stack, kind) => isInside(parent) || parent === ROOT_CHAIN
      ? intern(parent, stack, kind)
      : OUTSIDE_CHAIN + kind
  }
}

/** @param {Scope | undefined} next */
function setScope (next) {
  option = next
  matches = next === undefined ? () => false : matcherOf(next)
  const isOfFiles = typeof next === 'string' && next.startsWith('file:')
  files = isOfFiles ? patternOf(next.slice('file:'.length)) : undefined
  fileNotes.forget(firstInside)
}

/** @param {string} glob of a file: `*` is a part of a name, `**` also of the path @returns {RegExp} */
function patternOf (glob) {
  const parts = resolve(glob).split(/(\*+)/).map((part, i) => {
    return i % 2 === 0 ? part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&') : part === '*' ? '[^/\\\\]*' : '.*'
  })
  return new RegExp(`^(?:file://)?${parts.join('')}$`)
}

/** Whether a function of a file of the scope is on a stack. @param {number} chain of that stack alone */
function isOfFile (chain) {
  let note = fileNotes.get(chain)
  if (note === 0) {
    const frames = source.chainAt(chain)?.stack?.frames ?? []
    note = frames.some(({ fileName }) => fileName !== undefined && files?.test(fileName)) ? YES : NO
    fileNotes.set(chain, note)
  }
  return note === YES
}

/** Chains below a number are not inside. @param {number} first */
function beginAt (first) {
  firstInside = first
}

/** Chains are numbered anew. @param {number} first */
function renumber (first) {
  if (first < firstInside) firstInside = first
  fileNotes.forget(first)
}

/** @param {Scope} scope @returns {Matcher} */
function matcherOf (scope) {
  if (typeof scope === 'function') {
    return (_, request) => request !== undefined && isTrue(/** @type {any} */ (scope)(request))
  }
  const [, kind, name = '', value] = /^([\w-]+)(?::([^=]*)(?:=(.*))?)?$/.exec(scope) ?? []
  if (kind === 'one-in') return () => requestCount++ % Number(name) === 0
  if (kind !== 'header') return () => false
  const header = name.trim().toLowerCase()
  const wanted = value?.trim()
  return (headerOf) => wanted === undefined ? headerOf(header) !== undefined : headerOf(header) === wanted
}

/** @param {unknown} answer of the program's function */
function isTrue (answer) {
  if (isObject(answer)) throw new TypeError('the function must return true or false, no promise')
  return Boolean(answer)
}

/**
 * Returns the chain in which a request goes on: the program's predicate is called here, as longstack's own
 * work.
 * @param {object | undefined} request an IncomingMessage; undefined: it is one of HTTP/2
 * @param {any} headers names and values in turn, or an object
 * @param {number} kind number of the kind of its resource
 * @returns {number}
 */
function chainOfRequest (request, headers, kind) {
  const headerOf = (/** @type {string} */ name) => {
    return Array.isArray(headers) ? listed(headers, name) : isObject(headers) ? own(headers, name) : undefined
  }
  readClock() // steps outside have not
  let isMatch = false
  try {
    isMatch = matches(headerOf, request)
  } catch (error) {
    warn('SCOPE', `option "scope": its function failed: ${messageOf(error)}. Such requests get no stacks.`)
  }
  return isMatch ? source.intern(ROOT_CHAIN, source.emptyStack(), kind) & CHAIN_BITS : OUTSIDE_CHAIN + kind
}

/** @param {string[]} list names and values in turn @param {string} name in lower case */
function listed (list, name) {
  for (let i = 0; i + 1 < list.length; i += 2) {
    const candidate = list[i]
    if (candidate.length === name.length && candidate.toLowerCase() === name) return list[i + 1]
  }
  return undefined
}

/** The next resource that is made enters the scope. */
function enterNext () {
  isEntering = true
}

module.exports = {
  around,
  beginAt,
  chainOfRequest,
  enterNext,
  isOn: () => option !== undefined,
  isOutside,
  renumber,
  setScope
}
