'use strict'

// longstack attach: while commands are attached, tracing is on with what they ask for; when the last one
// goes, the options are those from before, or tracing is off again.

const { listeners: blockedListeners } = require('../blocked/wanted')
const { BlockingTexts } = require('../format/blocking')
const { environmentOptions, parseOptions } = require('../options')
const { settings } = require('../settings')
const { messageOf } = require('../warnings')

/**
 * @typedef {import('../options').Options} Options
 * @typedef {{ spans?: string, blocked?: number, filter?: string[] }} Wishes
 */

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
 * @param {import('./session').Session} session
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

/** Tells a command of each callback that blocks. @param {import('./session').Session} session */
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

module.exports = { attach }
