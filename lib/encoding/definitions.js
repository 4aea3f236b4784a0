'use strict'

// Definitions that the spans of a file refer to. Each line is written once per file, before the first span
// that needs it; a newly opened file begins with all lines written before.

const { shortId } = require('./ids')
const { onOneLine } = require('./serialize')

const VERSION = 2
const BEGIN = `{"longstack":${VERSION},`
const MAX_TEXT = 1 << 19 // characters; beyond that, everything is defined again under a new source

class Definitions {
  /** id of the writer: a file may have spans of several processes, threads and starts */
  #source = shortId()
  /** numbers of stacks, sites and attributes, by the text or object @type {Map<unknown, number>} */
  #numbers = new Map()
  /** numbers of names of types and requests @type {Map<string, number>} */
  #names = new Map()
  /** all lines written */
  #written = ''
  /** definitions for the next span, not written yet */
  #new = ''

  /** All lines, for a newly opened file. */
  get text () { return this.#written }

  /** Starts anew after lines were lost. */
  clear () {
    this.#source = shortId()
    this.#numbers.clear()
    this.#names.clear()
    this.#written = this.#new = ''
  }

  /**
   * Returns the id of the writer. Each span calls this before its definitions are added.
   * @param {Record<string, unknown>} resource
   * @returns {string}
   */
  sourceOf (resource) {
    if (this.#written.length > MAX_TEXT && this.#new === '') this.clear()
    if (this.#written === '' && this.#new === '') this.#add({ resource })
    return this.#source
  }

  /** @param {string} text the long stack of a place @returns {number} */
  numberOfStack (text) {
    return this.#numbers.get(text) ?? this.#define(this.#numbers, text, 'stack', { text })
  }

  /** @param {import('./span-figures').Site} site @returns {number | undefined} undefined: unknown */
  numberOfSite (site) {
    const { at: place, callers, label } = site
    if (place === undefined && callers === undefined && label === undefined) return undefined
    return this.#numbers.get(site) ?? this.#define(this.#numbers, site, 'site', site)
  }

  /** @param {Record<string, unknown>} attributes of many spans, the same object for equal ones */
  numberOfShared (attributes) {
    return this.#numbers.get(attributes) ?? this.#define(this.#numbers, attributes, 'shared', { attributes })
  }

  /** @param {string} name of a type of resources, or of a request */
  numberOfName (name) {
    return this.#names.get(name) ?? this.#define(this.#names, name, 'name', { text: name })
  }

  /**
   * @param {Map<any, number>} numbers
   * @param {unknown} key
   * @param {'stack' | 'site' | 'shared' | 'name'} kind
   * @param {object} definition
   */
  #define (numbers, key, kind, definition) {
    const number = this.#numbers.size + this.#names.size + 1
    numbers.set(key, number)
    this.#add({ [kind]: number, ...definition })
    return number
  }

  /** @param {object} members */
  #add (members) {
    this.#new += onOneLine(`${BEGIN}"source":"${this.#source}",${JSON.stringify(members).slice(1)}\n`)
  }

  /** Returns the lines to write before the next span. */
  takeNew () {
    const lines = this.#new
    if (lines !== '') {
      this.#new = ''
      this.#written += lines
    }
    return lines
  }
}

/** Returns whether a line is a definition rather than a span. @param {string} line */
const isDefinition = (line) => line.startsWith('{"longstack":')

module.exports = { Definitions, isDefinition }
