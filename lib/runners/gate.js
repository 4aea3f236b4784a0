'use strict'

// The leak gate for test runner plug-ins: reports handles that a test or a test file opened and left open.
// Runs in the copy of longstack that traces (shared.js), whatever realm the tests are in.

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
 * @typedef {{ owner: string, why: Why }} Leak owner: the test or file that left it open
 *
 * @typedef {'test' | 'file' | 'off'} Mode test: leaks count per test and per file; file: per file only
 *
 * @typedef {object} Mark start of a test or file
 * @property {string} name
 * @property {Snapshot} before
 * @property {number} asyncId of the resource that a concurrent test runs in; 0 if it runs alone
 *
 * @typedef {object} EndOptions
 * @property {boolean} [later] hooks of the program that may close open handles are still to run, so leaks
 *   count at the end of the file
 * @property {boolean} [isShared] other tests ran at the same time, so the chain determines the opener
 *
 * @typedef {object} Gate
 * @property {Mode} mode
 * @property {(name: string) => Mark} begin called when a test begins, before its own hooks
 * @property {(mark: Mark, options?: EndOptions) => Promise<void>} end called after a test and its own hooks:
 *   rejects with the handles it left open
 * @property {(mark: Mark) => void} retried called if the runner dropped a test's failure and retries it:
 *   handles left open by that attempt count at the end of the file
 * @property {(file?: string) => Mark} beginFile called when a file begins, before its hooks
 * @property {(mark: Mark) => Promise<void>} endFile called after a file and its hooks: rejects with handles
 *   left open and not yet reported for a test. Handles still open then no longer keep the process alive
 * @property {<T>(mark: Mark, fn: () => T) => T} run runs one of several concurrent tests: only handles that
 *   descend from it count as its own
 */

// Captured before a program replaces them with fake timers.
const { setImmediate, setTimeout } = globalThis
const { now } = performance

const GRACE_MS = 300 // for handles that are closing
const GRACE_TURNS = 20 // of the event loop, on a busy machine
const PAUSE_MS = 5
const MAX_NAME = 200 // characters of a test's name
const MAX_KINDS = 5 // kinds of leaks named per owner
const modes = /** @type {const} */ (['test', 'file', 'off'])

/** Types that another process or thread closes, which takes longer. */
const closedElsewhere = new Set(['PROCESSWRAP', 'WORKER'])
const ELSEWHERE_MS = 2000

/** @returns {Gate} */
function createGate () {
  const mode = readMode()
  /** already reported @type {WeakSet<object>} */
  const reported = new WeakSet()
  /** opening test, by handle that may still be closed @type {WeakMap<object, string>} */
  const suspects = new WeakMap()
  /** reported leaks, by the test's mark @type {WeakMap<Mark, Subject[]>} */
  const blamed = new WeakMap()
  /** reported leaks of the current file @type {Array<WeakRef<object>>} */
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

  /** Waits for handles that are closing. @param {Mark} mark @returns {Promise<Subject[]>} */
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

  /** Lets the process end: open handles are reported or accepted ones. @param {Mark} mark of a file */
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

/** @param {string | undefined} text report of the leaks @throws {Error & { code: string }} */
function raise (text) {
  if (text === undefined) return
  const error = snapshots.createLeakError(text, [], createGate)
  error.stack = `Error: ${text}` // the place in the gate does not matter
  throw error
}

/**
 * Returns whether the program opened it, and it is a leak if it stays open. Accepted connections of a server
 * do not count: their opener is reported, or the opener of a server left open.
 * @param {Subject} subject
 */
function isLeak (subject) {
  const { context, type } = subject
  if (context === undefined || !isOfProgram(context)) return false
  if (!snapshots.isLeaking({ type, referenced: keepsProcessAlive(subject) })) return false
  return !isAccepted(subject)
}

/**
 * Returns the node:test test that a chain comes from, by its place of declaration.
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

/** @param {any} object a handle, or the program's object for it */
function unreference (object) {
  try {
    object?.unref?.()
  } catch {} // overridden by the program's class
}

/**
 * Returns whether the program created it, and not a runner for itself: test timers, connections to workers.
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
 * Formats a gate's message: "test 'saves' left 1 TCP connection, opened at connect (db.js:3)", and the chains
 * that opened it.
 * @param {Leak[]} leaks
 */
function leaksText (leaks) {
  return groupBy(leaks, ({ owner }) => owner).map((group) => {
    const reports = group.map(({ why }) => why)
    return `${group[0].owner} left ${kindsOf(reports)}\n\n${listText(reports)}`
  }).join('\n\n')
}

/** @param {Why[]} reports @returns {string} count, kind and opener of the handles */
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
