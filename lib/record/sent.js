'use strict'

// Sends this thread's run log to a command on request, as blocks of a recording. The command builds the
// spans. If it reads too slowly, the log it gets has gaps.

const guard = require('../core/guard')
const { lineOf } = require('../encoding/serialize')
const { changeState } = require('../listeners')
const { applySpans, commands } = require('../spans/index')
const { BlockMaker } = require('./block-maker')
const taking = require('./taking')

/**
 * @typedef {object} Receiver
 * @property {(block: Buffer) => void} send
 * @property {() => number} waiting returns the bytes it has not read yet
 * @property {number} maxWaiting limit above which nothing is sent until it has read all of them
 */

/** @implements {taking.Consumer} */
class SentRecording {
  #receiver
  #maker = new BlockMaker()
  /** text of records for commands only */
  #records = ''
  #isPaused = false
  #sentAt = 0
  /** entries left out before the next block */
  #lost = 0
  /** total ms of the log that were left out */
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

  /** Sends the rest, then stops. */
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
      taking.repeat() // later entries need the definitions in these texts
    } else {
      send(this.#maker.make({ ...piece, lost: piece.lost + this.#lost }, this.#records))
      this.#lost = 0
      this.#records = ''
    }
    this.#sentAt = now
  }

  /** Adds a record that is not one of the program's spans. @param {object} record */
  addRecord (record) {
    if (!this.#isPaused) this.#records += `${lineOf({ record }, () => {})}\n`
  }
}

module.exports = { SentRecording }
