'use strict'

// What commands ask a process: each question is a function of its argument and the session of the command.
// Answers are plain data. Those that look at many things are generators: see session.js.

const { listeners: blockedListeners } = require('../blocked/wanted')
const { BlockingTexts } = require('../format/blocking')
const { groupKey, printed } = require('../format/handles')
const { providers } = require('../node-objects')
const { environmentOptions, parseOptions } = require('../options')
const { settings } = require('../settings')
const { compile } = require('../subsystems')
const { messageOf } = require('../warnings')

/**
 * @typedef {import('./session').Session} Session
 * @typedef {import('../handles/why').Why} Why
 * @typedef {import('../format/handles').Printed} Printed
 * @typedef {import('../options').Options} Options
 * @typedef {{ spans?: string, blocked?: number, filter?: string[] }} Wishes
 *
 * What is open, as it is sent: of handles with equal chains the first has the hops.
 * @typedef {Omit<Printed, 'opened' | 'usedBy' | 'writtenBy'> & { group: number, opened?: Printed['opened'],
 *   usedBy?: { request: string, hops?: any[] }, writtenBy?: Printed['writtenBy'] }} SentHandle
 */

const BATCH = 100 // handles in a part of an answer

/** What the process is. */
function facts () {
  const { isMainThread, threadId } = require('node:worker_threads')
  const { rss } = isMainThread ? process.memoryUsage() : { rss: undefined }
  return {
    pid: process.pid,
    threadId,
    isMainThread,
    node: process.version,
    longstack: require('../../package.json').version,
    title: process.title,
    script: process.argv[1],
    uptimeMs: performance.now(),
    rss,
    tracing: settings.enabled ? 'full' : 'off',
    spans: settings.enabled && settings.options.spans !== undefined,
    blocked: settings.enabled ? settings.options.blocked : undefined
  }
}

/**
 * What is open.
 * @param {{ filter?: string[] }} argument
 * @returns {Generator<SentHandle[] | undefined, void>}
 */
const open = ({ filter = ['*'] }) => batches(require('../handles/why').open(compile(filter, providers())))

/** @param {Iterable<Why | undefined>} reports @returns {Generator<SentHandle[] | undefined, void>} */
function * batches (reports) {
  /** by key @type {Map<string, number>} */
  const groups = new Map()
  /** @type {SentHandle[]} */
  let batch = []
  for (const why of reports) {
    const facts = why && /** @type {Printed} */ (printed.read(why))
    if (facts !== undefined && facts.state !== 'closed') batch.push(sentHandle(facts, groups)) // since listed
    if (batch.length < BATCH) {
      yield undefined
      continue
    }
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** @param {Printed} facts @param {Map<string, number>} groups @returns {SentHandle} */
function sentHandle ({ opened, usedBy, writtenBy, ...others }, groups) {
  const key = groupKey({ opened, usedBy, writtenBy, ...others })
  const present = groups.get(key)
  if (present !== undefined) {
    return { ...others, group: present, usedBy: usedBy && { request: usedBy.request } }
  }
  const group = groups.size
  groups.set(key, group)
  return { ...others, group, opened, usedBy, writtenBy }
}

/** Remembers what is open. @param {{}} _ @param {Session} session @returns {Generator<undefined, void>} */
function * snapshot (_, { kept }) {
  kept.set('snapshot', yield * require('../handles/snapshots').record())
}

/**
 * What is open and was not when `snapshot` was asked.
 * @param {{}} _
 * @param {Session} session
 * @returns {Generator<SentHandle[] | undefined, void>}
 */
function * diff (_, { kept }) {
  const before = kept.get('snapshot')
  if (before === undefined) throw new Error('there is no snapshot to compare with')
  yield * batches(yield * require('../handles/snapshots').compare(before))
}

/**
 * Records a profile; it ends early where `finishProfile` is asked, or the command goes.
 * @param {{ seconds: number, samples: boolean }} options
 * @param {Session} session
 * @returns {Promise<import('../profile/profile').Profile>}
 */
function profile (options, session) {
  const { finishProfile, recordProfile } = require('../tracer')
  let isOver = false
  session.onEnd(() => { if (!isOver) finishProfile() })
  return recordProfile(options).finally(() => { isOver = true })
}

// longstack attach: while commands are attached, tracing is on with what they ask for; when the last one
// goes, the options are those from before, or tracing is off again.

/** of the commands that are attached, oldest first @type {Set<Wishes>} */
const attached = new Set()
/** what was in force before the first @type {{ options: Options, enabled: boolean, hasRecorded: boolean }} */
let before
/** what was put in force for them last @type {Options | undefined} */
let applied

/** Puts in force what commands ask for. @throws {LongstackError} for a wrong option */
function applyWishes () {
  const wishes = /** @type {any} */ (Object.assign({}, ...attached))
  const parsed = /** @type {any} */ (parseOptions(wishes, environmentOptions()))
  applied = { ...before.enabled ? before.options : parseOptions({}, environmentOptions()) }
  for (const name of Object.keys(wishes)) Object.assign(applied, { [name]: parsed[name] })
  require('../tracer').apply(applied)
}

/** A command goes. @param {Wishes} wishes */
function detach (wishes) {
  if (!attached.delete(wishes)) return
  // Otherwise the program has enabled or disabled tracing itself since then
  if (!settings.enabled || settings.options !== applied) return
  if (attached.size > 0) return applyWishes()
  const tracer = require('../tracer')
  if (before.enabled) return tracer.apply(before.options)
  tracer.disable()
  settings.options = before.options
  if (!before.hasRecorded) tracer.forget()
}

/**
 * Has tracing on until the command goes, and tells it of callbacks that block.
 * @param {Wishes} wishes
 * @param {Session} session
 * @returns {{ wasEnabled: boolean, blocked: boolean }} blocked: they are told to this command
 */
function attach (wishes, session) {
  const { enabled, options } = settings
  if (attached.size === 0) before = { options, enabled, hasRecorded: require('../tracer').hasRecorded() }
  attached.add(wishes)
  try {
    applyWishes()
  } catch (error) {
    attached.delete(wishes)
    throw error
  }
  session.onEnd(() => detach(wishes))
  const blocked = wishes.blocked !== undefined && !(enabled && options.blocked !== undefined)
  if (blocked) tellBlocked(session)
  return { wasEnabled: enabled, blocked }
}

/** Tells a command of each callback that blocks. @param {Session} session */
function tellBlocked (session) {
  const texts = new BlockingTexts()
  const textOf = (/** @type {any} */ event) => {
    try {
      return texts.format(event, event.span)
    } catch (error) {
      return messageOf(error)
    }
  }
  const send = (/** @type {any} */ event) =>
    session.send({ event: 'blocked', value: { text: textOf(event) } })
  blockedListeners.add(send)
  session.onEnd(() => { blockedListeners.delete(send) })
}

const top = () => require('../top/sampler')

const questions = {
  facts,
  open,
  /** Requests in flight, and what each waits for. */
  requests: () => require('../handles/requests-in-flight').requestsInFlight(),
  /** What is awaited and not settled. @param {{ olderThanMs?: number }} argument */
  pending: (argument) => require('../handles/pending').slices(argument),
  snapshot,
  diff,
  attach,
  profile,
  /** Ends the profile that is being recorded: `profile` answers. */
  finishProfile: () => require('../tracer').finishProfile(),
  /** Starts figures. @param {import('../top/sampler').TopOptions} options @param {Session} session */
  startTop: (options, session) => top().startTop(options, session),
  /** Returns the figures since the last call. @param {{}} _ @param {Session} session */
  readTop: (_, session) => top().readTop(session),
  /** Ends figures. @param {{}} _ @param {Session} session */
  stopTop: (_, session) => top().stopTop(session),
  /** Returns a chain as text. @param {{ chain: number }} argument */
  describeChain: ({ chain }) => require('../format/chain-texts').chainText(chain)
}

module.exports = { questions }
