'use strict'

// longstack attach: while commands are attached, tracing is on with what they ask for; when the last one
// goes, the options are those from before, or tracing is off again.

const { listeners: blockedListeners } = require('../blocked/wanted')
const { BlockingTexts } = require('../format/blocking')
const { environmentOptions, parseOptions } = require('../options')
const { settings } = require('../settings')
const { messageOf } = require('../warnings')

/**
 * @typedef {import('./session').Session} Session
 * @typedef {import('../options').Options} Options
 * @typedef {{ options: Options, enabled: boolean, hasRecorded: boolean }} Before
 * @typedef {{ spans?: string, blocked?: number, filter?: string[] }} Wishes
 */

class Attachments {
  /** of the commands that are attached, oldest first @type {Set<Wishes>} */
  #wishes = new Set()
  /** before the first @type {Before | undefined} */
  #before
  /** what was put in force here last @type {Options | undefined} */
  #applied
  #tracer

  /** @param {import('../tracer').Tracer} tracer */
  constructor (tracer) {
    this.#tracer = tracer
  }

  /** @param {Wishes} wishes @throws {import('../errors').LongstackError} for a wrong option */
  add (wishes) {
    const { options, enabled } = settings
    const hasRecorded = this.#tracer.hasRecorded()
    if (this.#wishes.size === 0) this.#before = { options, enabled, hasRecorded }
    this.#wishes.add(wishes)
    try {
      this.#apply()
    } catch (error) {
      this.#wishes.delete(wishes)
      throw error
    }
  }

  /** @param {Wishes} wishes */
  remove (wishes) {
    const before = this.#before
    if (!this.#wishes.delete(wishes) || before === undefined) return
    const isOurs = settings.enabled && settings.options === this.#applied
    if (this.#wishes.size > 0) {
      if (isOurs) this.#apply()
      return
    }
    this.#before = this.#applied = undefined
    if (!isOurs) return // the program has enabled or disabled tracing itself since then
    if (before.enabled) return this.#tracer.apply(before.options)
    this.#tracer.disable()
    settings.options = before.options
    if (!before.hasRecorded) this.#tracer.forget()
  }

  #apply () {
    const before = /** @type {Before} */ (this.#before)
    const base = before.enabled ? before.options : parseOptions({}, environmentOptions())
    const wishes = Object.assign({}, ...this.#wishes)
    const options = { ...base, ...parseWishes(wishes) }
    this.#applied = options
    this.#tracer.apply(options)
  }
}

/** Checks the options that a command asks for. @param {Wishes} wishes @returns {Partial<Options>} */
function parseWishes (wishes) {
  const parsed = /** @type {any} */ (parseOptions(/** @type {any} */ (wishes), environmentOptions()))
  return Object.fromEntries(Object.keys(wishes).map((name) => [name, parsed[name]]))
}

/** @type {Attachments | undefined} */
let attachments

/**
 * Has tracing on until the command goes, and tells it of callbacks that block.
 * @param {Wishes} wishes
 * @param {Session} session
 * @returns {{ wasEnabled: boolean, blocked: boolean }} blocked: they are told to this command
 */
function attach (wishes, session) {
  attachments ??= new Attachments(session.tracer)
  const { enabled, options } = settings
  const tellsBlocked = wishes.blocked !== undefined && !(enabled && options.blocked !== undefined)
  attachments.add(wishes)
  const present = attachments
  session.onEnd(() => present.remove(wishes))
  if (!tellsBlocked) return { wasEnabled: enabled, blocked: false }
  const texts = new BlockingTexts()
  const tell = (/** @type {any} */ event) => {
    session.send({ event: 'blocked', value: { text: blockedText(texts, event) } })
  }
  blockedListeners.add(tell)
  session.onEnd(() => { blockedListeners.delete(tell) })
  return { wasEnabled: enabled, blocked: true }
}

/** @param {BlockingTexts} texts @param {any} event of callbacks that block */
function blockedText (texts, event) {
  try {
    return texts.format(event, event.span)
  } catch (error) {
    return messageOf(error)
  }
}

module.exports = { attach }
