'use strict'

// What passes the transforms of one connection. Each gets, unchanged, what the one before it returned; what
// the last one returned is what the parser has to have.

const { bytesByRule, copyOf } = require('./transforms')

const EMPTY = Buffer.alloc(0)

class Flow {
  /** bytes of the client that no transform has seen */
  #source
  /** what the last transform that was called has passed on */
  #current = EMPTY
  /** its place */
  #last = -1
  /** the transforms are asked for what they hold back */
  #isFlush = false
  /** what the parser got, piece by piece, in each turn @type {Buffer[][]} */
  turns = [[]]
  /** a transform failed, or destroyed the socket */
  hasEnded = false
  /** a transform was called in a wrong way @type {string | undefined} */
  fault

  /** @param {Buffer} source all that the client sends */
  constructor (source) {
    this.#source = source
  }

  /** What the client has sent past the transforms: after an upgrade. */
  get unseen () { return this.#source }

  /** The transforms change: what they have passed on is with the parser. */
  complete () {
    if (this.#current.length > 0) this.turns[this.turns.length - 1].push(this.#current)
    this.#current = EMPTY
    this.#last = -1
    this.#isFlush = false
  }

  /** Later pieces come in a later iteration of the event loop. */
  endTurn () {
    this.complete()
    if (!this.hasEnded) this.turns.push([])
  }

  /**
   * Calls a transform, and checks what it is given.
   * @param {number} place of the transform
   * @param {Buffer} chunk
   * @param {() => unknown} call
   */
  call (place, chunk, call) {
    const given = copyOf(chunk)
    if (this.hasEnded) this.fault ??= `transform ${place} was called after the end of its connection`
    this.#take(place, given)
    let bytes
    try {
      const returned = call()
      bytes = bytesByRule(returned, chunk)
      return returned
    } finally {
      if (bytes === undefined) this.end()
      else this.#current = given.length === 0 ? Buffer.concat([this.#current, bytes]) : bytes
      this.#last = place
    }
  }

  /** What is on its way is dropped. */
  end () {
    this.hasEnded = true
    this.#current = EMPTY
  }

  /** @param {number} place @param {Buffer} chunk */
  #take (place, chunk) {
    if (chunk.length === 0) {
      if (!this.#isFlush || place < this.#last) this.complete()
      this.#isFlush = true
      return
    }
    if (place > this.#last && this.#current.length > 0 && chunk.equals(this.#current)) return
    this.complete()
    const expected = this.#source.subarray(0, chunk.length)
    this.#source = this.#source.subarray(chunk.length)
    if (expected.equals(chunk)) return
    const texts = [chunk, expected].map((bytes) => JSON.stringify(bytes.toString('latin1')))
    this.fault ??= `transform ${place} was given ${texts.join(', not ')}`
  }
}

module.exports = { Flow }
