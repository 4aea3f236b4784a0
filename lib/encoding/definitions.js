'use strict'

// What the spans of a file refer to. Each line of these is written once a file, before the first span that
// needs it; a file that is opened anew begins with all that were written before.

const { shortId } = require('./ids')
const { onOneLine } = require('./serialize')

const VERSION = 2
const BEGIN = `{"longstack":${VERSION},`
const MAX_TEXT = 1 << 19 // characters; then everything is defined again, under another source

class Definitions {
  /** who writes: a file may have the spans of several processes, threads and starts */
  #source = shortId()
  /** numbers of stacks, sites and attributes, by the text or object @type {Map<unknown, number>} */
  #numbers = new Map()
  /** of names: of types, and of requests @type {Map<string, number>} */
  #names = new Map()
  /** all that was written */
  #written = ''
  /** what the next span refers to and is not written yet */
  #new = ''

  /** All lines, for a file that is opened anew. */
  get text () { return this.#written }

  /** Defines everything again: lines were lost. */
  clear () {
    this.#source = shortId()
    this.#numbers.clear()
    this.#names.clear()
    this.#written = this.#new = ''
  }

  /**
   * Returns the id of who writes. Asked for by each span, before what it refers to is defined.
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

  /** @param {Record<string, unknown>} attributes that many spans have, the same object for equal ones */
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

  /** Returns the lines that are to be written before the next span. */
  takeNew () {
    const lines = this.#new
    if (lines !== '') {
      this.#new = ''
      this.#written += lines
    }
    return lines
  }
}

/** Returns whether a line is no span, but defines what spans refer to. @param {string} line */
const isDefinition = (line) => line.startsWith('{"longstack":')

module.exports = { Definitions, isDefinition }
