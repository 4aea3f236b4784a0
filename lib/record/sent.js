'use strict'

// Sends this thread's run log to a command that asks, as the blocks of a recording: the command makes the
// spans. One that reads too slowly gets the log in stretches.

const guard = require('../core/guard')
const { lineOf } = require('../encoding/serialize')
const { changeState } = require('../listeners')
const { applySpans, commands } = require('../spans/index')
const { BlockMaker } = require('./block-maker')
const taking = require('./taking')

/**
 * @typedef {object} Receiver
 * @property {(block: Buffer) => void} send
 * @property {() => number} waiting bytes that it has not read yet
 * @property {number} maxWaiting past which nothing is sent until it has read all of them
 */

/** @implements {taking.Consumer} */
class SentRecording {
  #receiver
  #maker = new BlockMaker()
  /** records that only commands want, as texts */
  #records = ''
  #isPaused = false
  #sentAt = 0
  /** entries that were left out before the next block */
  #lost = 0
  /** ms for which the log was left out */
  unsentMs = 0

  /** @param {Receiver} receiver */
  constructor (receiver) {
    this.#receiver = receiver
  }

  start () {
    guard.run(() => {
      taking.add(this)
      commands.add(this)
      changeState(applySpans)
    })
  }

  /** Sends what there is, and no more. */
  stop () {
    guard.run(() => {
      if (!commands.delete(this)) return
      taking.remove(this)
      changeState(applySpans)
    })
  }

  /** @param {taking.Piece} piece */
  take (piece) {
    const { maxWaiting, send, waiting } = this.#receiver
    const { now } = piece
    if (this.#sentAt === 0) this.#sentAt = now
    this.#isPaused = waiting() > (this.#isPaused ? 0 : maxWaiting)
    if (this.#isPaused) {
      this.unsentMs += now - this.#sentAt
      this.#lost += piece.lost + piece.count
      taking.repeat() // what these texts define is needed later
    } else {
      send(this.#maker.make({ ...piece, lost: piece.lost + this.#lost }, this.#records))
      this.#lost = 0
      this.#records = ''
    }
    this.#sentAt = now
  }

  /** Adds a record that is no span of the program's. @param {object} record */
  addRecord (record) {
    if (!this.#isPaused) this.#records += `${lineOf({ record }, () => {})}\n`
  }
}

module.exports = { SentRecording }
