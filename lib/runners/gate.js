'use strict'

// The leak gate of the plug-ins for test runners: what a test, or a file of tests, opened and left open. A
// runner runs it in the copy of longstack that traces (shared.js), whatever realm the tests are in.

const path = require('node:path')
const { startQuery } = require('../core/clock')
const guard = require('../core/guard')
const snapshots = require('../handles/snapshots')
const { isAccepted, keepsProcessAlive } = require('../handles/state')
const { report: whyOf } = require('../handles/why')
const { listText, madeNotOpened, printed } = require('../format/handles')
const { placeOf } = require('../format/hops')
const { groupBy } = require('../group-by')
const { clean } = require('../text')
const { printFromMainThread } = require('../warnings')
const { isProgram } = require('../stacks/frames')
const { baseName } = require('../stacks/text-scan')
const { runnerOf } = require('../stacks/test-runners')

/**
 * @typedef {import('../handles/subject').Subject} Subject
 * @typedef {import('../handles/snapshots').Snapshot} Snapshot
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../handles/why').Why} Why
 * @typedef {{ owner: string, why: Why }} Leak owner: the test or file that is blamed
 *
 * @typedef {'test' | 'file' | 'off'} Mode test: leaks count by test and by file; file: by file only
 *
 * @typedef {object} Mark where a test or a file began
 * @property {string} name
 * @property {Snapshot} before
 * @property {number} asyncId of the resource in which a concurrent test runs; 0: it runs alone
 *
 * @typedef {object} EndOptions
 * @property {boolean} [later] hooks of the program are still to come that may close what is open: it counts
 *   at the end of the file
 * @property {boolean} [isShared] other tests ran at the same time: which of them opened it, its chain tells
 *
 * @typedef {object} Gate
 * @property {Mode} mode
 * @property {(name: string) => Mark} begin a test begins, before its own hooks
 * @property {(mark: Mark, options?: EndOptions) => Promise<void>} end a test is over, its own hooks included:
 *   rejects with what it left open
 * @property {(mark: Mark) => void} retried the runner has dropped the failure of a test, which it tries
 *   again: what that attempt left open counts at the end of the file
 * @property {(file?: string) => Mark} beginFile a file begins, before its hooks
 * @property {(mark: Mark) => Promise<void>} endFile a file is over, its hooks included: rejects with what it
 *   left open and no test was blamed for. What was left open then keeps the process alive no longer
 * @property {<T>(mark: Mark, fn: () => T) => T} run runs a test that is one of several at a time: only what
 *   descends from there is its own
 */

// Captured before a program replaces them by fake ones.
const { setImmediate, setTimeout } = globalThis
const { now } = performance

const GRACE_MS = 300 // for what is just closing
const GRACE_TURNS = 20 // of the event loop, on a busy machine
const PAUSE_MS = 5
const MAX_NAME = 200 // characters of a test's
const MAX_KINDS = 5 // of leaks, named of an owner
const modes = /** @type {const} */ (['test', 'file', 'off'])

/** Types that are closed by another process or thread: that takes its time. */
const closedElsewhere = new Set(['PROCESSWRAP', 'WORKER'])
const ELSEWHERE_MS = 2000

/** @returns {Gate} */
function createGate () {
  const mode = readMode()
  /** blamed already @type {WeakSet<object>} */
  const reported = new WeakSet()
  /** the test that opened it, of what may still be closed @type {WeakMap<object, string>} */
  const suspects = new WeakMap()
  /** what was reported of a test, by where it began @type {WeakMap<Mark, Subject[]>} */
  const blamed = new WeakMap()
  /** what was reported of the present file @type {Array<WeakRef<object>>} */
  let leftOpen = []

  /** @param {string} name @returns {Mark} */
  function begin (name) {
    return guard.run(() => {
      startQuery()
      return { name: clean(name).slice(0, MAX_NAME), before: snapshots.take(), asyncId: 0 }
    })
  }

  /** @param {Mark} mark @returns {Subject[]} */
  function leaksSince (mark) {
    return guard.run(() => {
      startQuery()
      const opened = snapshots.opened(mark.before)
      return opened.filter((subject) => isLeak(subject) && isWithin(mark, subject))
        .filter(({ handle }) => handle !== undefined && !reported.has(handle))
    })
  }

  /** Waits while something may just be closing. @param {Mark} mark @returns {Promise<Subject[]>} */
  async function lastingLeaks (mark) {
    const start = now.call(performance)
    for (let turns = 0; ; turns++) {
      const leaks = leaksSince(mark)
      const elapsedMs = now.call(performance) - start
      const graceMs = leaks.some(({ type }) => closedElsewhere.has(type)) ? ELSEWHERE_MS : GRACE_MS
      if (leaks.length === 0 || (turns >= GRACE_TURNS && elapsedMs >= graceMs)) return leaks
      await pause(turns < 2)
    }
  }

  /** @param {Subject[]} leaks @param {(subject: Subject) => string} ownerOf @returns {string | undefined} */
  function report (leaks, ownerOf) {
    if (leaks.length === 0) return undefined
    return guard.run(() => {
      for (const { handle, object = handle } of leaks) {
        reported.add(/** @type {object} */ (handle))
        leftOpen.push(new WeakRef(/** @type {object} */ (object)))
      }
      startQuery()
      return leaksText(leaks.map((subject) => ({ owner: ownerOf(subject), why: whyOf(subject) })))
    })
  }

  /** Lets the process end: what is open was reported, or belongs to it. @param {Mark} mark of a file */
  function release (mark) {
    const accepted = guard.run(() => snapshots.opened(mark.before).filter(isAccepted))
    for (const { object, handle } of accepted) unreference(object ?? handle)
    for (const weak of leftOpen) unreference(weak.deref())
    leftOpen = []
  }

  return {
    mode,
    begin,

    beginFile (file) {
      return begin(file === undefined ? 'a test file' : `file ${path.relative(process.cwd(), file)}`)
    },

    async end (mark, { later = false, isShared = false } = {}) {
      if (mode !== 'test') return
      const owner = `test '${mark.name}'`
      if (!later) {
        const leaks = await lastingLeaks(mark)
        if (leaks.length > 0) blamed.set(mark, leaks)
        return raise(report(leaks, ({ handle }) => suspects.get(handle ?? mark) ?? owner))
      }
      for (const { handle, context } of leaksSince(mark)) {
        if (handle === undefined || suspects.has(handle)) continue
        suspects.set(handle, isShared ? declaredTest(context) ?? owner : owner)
      }
    },

    retried (mark) {
      for (const { handle } of blamed.get(mark) ?? []) {
        if (handle === undefined) continue
        reported.delete(handle)
        suspects.set(handle, `test '${mark.name}', in an attempt before its last,`)
      }
    },

    async endFile (mark) {
      if (mode === 'off') return
      const leaks = await lastingLeaks(mark)
      const text = report(leaks, ({ handle }) => suspects.get(handle ?? mark) ?? mark.name)
      if (leftOpen.length > 0) release(mark)
      raise(text)
    },

    run (mark, fn) {
      const { AsyncResource } = require('node:async_hooks')
      const resource = new AsyncResource('Test')
      mark.asyncId = resource.asyncId()
      return resource.runInAsyncScope(fn)
    }
  }
}

/** @param {string | undefined} text what was left open @throws {Error & { code: string }} */
function raise (text) {
  if (text === undefined) return
  const error = snapshots.createLeakError(text, [], createGate)
  error.stack = `Error: ${text}` // where the gate raises it does not matter
  throw error
}

/**
 * Whether the program opened it, and it is a leak if it stays open. Connections that a server accepts are
 * not: who opened them is blamed, or who left the server open.
 * @param {Subject} subject
 */
function isLeak (subject) {
  const { context, type } = subject
  if (context === undefined || !isOfProgram(context)) return false
  if (!snapshots.isLeaking({ type, referenced: keepsProcessAlive(subject) })) return false
  return !isAccepted(subject)
}

/**
 * Returns the test of node:test that a chain comes from, by where it was declared.
 * @param {Context | undefined} context
 */
function declaredTest (context) {
  for (let step = context; step !== undefined; step = step.parent) {
    const frame = step.type === 'Test' ? step.stack?.frames.find(({ kind }) => kind === 'user') : undefined
    if (frame?.fileName !== undefined) {
      return `test at ${clean(`${baseName(frame.fileName)}:${frame.lineNumber}`)}`
    }
  }
  return undefined
}

/** @param {any} object a handle, or what the program holds of one */
function unreference (object) {
  try {
    object?.unref?.()
  } catch {} // of the program's own class
}

/**
 * Whether the program made it, and not a runner for itself: timers of tests, connections to workers.
 * @param {Context} context
 */
function isOfProgram (context) {
  for (let step = /** @type {Context | undefined} */ (context); step !== undefined; step = step.parent) {
    for (const frame of step.stack?.frames ?? []) {
      if (runnerOf(frame) !== undefined) return false
      if (isProgram(frame)) return true
    }
  }
  return false
}

/** @param {Mark} mark @param {Subject} subject */
function isWithin ({ asyncId }, { context }) {
  if (asyncId === 0) return true
  let step = context
  while (step !== undefined && step.asyncId !== asyncId) step = step.parent
  return step !== undefined
}

/** @param {boolean} isShort */
function pause (isShort) {
  return new Promise((resolve) => {
    guard.run(() => isShort ? setImmediate(resolve) : setTimeout(resolve, PAUSE_MS))
  })
}

/** Reads LONGSTACK_LEAKS. @returns {Mode} */
function readMode () {
  const text = process.env.LONGSTACK_LEAKS
  if (text === undefined || text.trim() === '') return 'test'
  const mode = modes.find((word) => word === text)
  if (mode !== undefined) return mode
  printFromMainThread(`LONGSTACK_LEAKS must be "test", "file" or "off". Received ${JSON.stringify(text)}.`)
  return 'test'
}

/**
 * Returns what a gate says: "test 'saves' left 1 TCP connection, opened at connect (db.js:3)", and what
 * opened it.
 * @param {Leak[]} leaks
 */
function leaksText (leaks) {
  return groupBy(leaks, ({ owner }) => owner).map((group) => {
    const reports = group.map(({ why }) => why)
    return `${group[0].owner} left ${kindsOf(reports)}\n\n${listText(reports)}`
  }).join('\n\n')
}

/** @param {Why[]} reports @returns {string} how many of which kind were opened where */
function kindsOf (reports) {
  const opened = reports.map((why) => {
    const facts = printed.read(why)
    return { noun: facts?.noun ?? why.what, place: openedAt(why, facts?.opened ?? []) }
  })
  const kinds = groupBy(opened, ({ noun, place }) => `${noun} ${place}`)
  const texts = kinds.map((kind) => `${kind.length} ${plural(kind[0].noun, kind.length)}${kind[0].place}`)
  const more = texts.length - MAX_KINDS
  return texts.slice(0, MAX_KINDS).join(' and ') + (more > 0 ? ` and ${more} more kinds` : '')
}

/** @param {Why} why @param {import('../stacks/chain').PrintedHop[]} hops that opened it @returns {string} */
function openedAt ({ type }, hops) {
  const place = placeOf(hops)
  return place === undefined ? '' : `, ${madeNotOpened.test(type) ? 'made' : 'opened'} at ${place}`
}

/** @param {string} noun @param {number} count */
function plural (noun, count) {
  if (count === 1) return noun
  return /(s|ch|x)$/.test(noun) ? `${noun}es` : `${noun}s`
}

module.exports = { createGate }
