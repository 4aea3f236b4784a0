'use strict'

// Writes this thread's run log to a file as blocks (block.js), one write each. All threads and processes of a
// program can share one file. taking.js decides when.

const loopIterations = require('../core/loop-iterations')
const { OutputQueue } = require('../sinks/output-queue')
const { targetOf } = require('../sinks/outputs')
const { warn } = require('../warnings')
const { BlockMaker } = require('./block-maker')
const { atSuddenEnd, notAtSuddenEnd } = require('./ending')
const taking = require('./taking')
const texts = require('./texts')

const LOOK_MS = 1000 // between looks at requests that stay open

/**
 * @typedef {object} RecordStats
 * @property {string} to
 * @property {number} ringBytes memory of the ring
 * @property {number} entries written to the ring
 * @property {number} lost entries overwritten before they could be written to the file
 * @property {number} written blocks
 * @property {number} bytes of all blocks created
 * @property {number} waiting blocks not written yet
 * @property {number} dropped blocks
 * @property {string} [fault] reason why nothing can be written now
 */

/** @implements {taking.Consumer} */
class Recording {
  #maker = new BlockMaker()
  /** @type {OutputQueue} */
  #queue
  #bytes = 0
  #lost = 0
  #isLookDue = false
  #isClosed = false

  /** @param {string} option the file name as given */
  constructor (option) {
    this.option = option
    this.#queue = new OutputQueue(targetOf(option), option, {
      name: 'blocks of the recording',
      code: 'RECORD',
      warnSlow: () => warn('RECORD_SLOW_READER', `the reader of ${option} is too slow: ` +
        'blocks of the recording are dropped, and counted in trace.stats().record.'),
      isText: false,
      split: (block) => block === '' ? [] : [block],
      counts: () => true,
      pieceEnd: (bytes) => bytes.length,
      around: (bytes) => [0, bytes.length],
      beginning: repeatTexts,
      forget: repeatTexts
    }, warn)
    taking.add(this)
    atSuddenEnd(this.#suddenEnd)
  }

  #suddenEnd = () => {
    this.#writeNow()
    texts.addOpen() // may take a moment, so the rest comes first
    this.#writeNow()
  }

  #writeNow () {
    taking.takeWithin(true)
    this.#queue.flush()
  }

  /** Opens the file, which may request all texts again. */
  prepare () {
    this.#queue.prepare()
  }

  /** Writes a block. @param {taking.Piece} piece */
  take (piece) {
    const block = this.#maker.make(piece)
    this.#lost += piece.lost
    this.#bytes += block.length
    this.#queue.write(block, 1)
  }

  /** Plans a look at requests that stay open. */
  taken () {
    if (this.#isLookDue || this.#isClosed || !texts.hasOpenSpans()) return
    this.#isLookDue = true
    loopIterations.scheduleWithin(this.#look, LOOK_MS)
  }

  #look = () => {
    this.#isLookDue = false
    if (this.#isClosed) return
    texts.addLongWaits()
    taking.take({ isWithin: false })
    this.taken()
  }

  /** Writes the rest, in bounded time. */
  flush () {
    this.#queue.flush()
  }

  /** Ends the recording. */
  close () {
    this.#isClosed = true
    notAtSuddenEnd(this.#suddenEnd)
    taking.remove(this)
    this.#queue.close()
  }

  /** @returns {RecordStats} */
  stats () {
    const { written, waiting, dropped, fault } = this.#queue
    return {
      to: this.option,
      ...taking.ring(),
      lost: this.#lost,
      written,
      bytes: this.#bytes,
      waiting,
      dropped,
      ...(fault !== undefined && { fault })
    }
  }
}

function repeatTexts () {
  taking.repeat()
  return ''
}

module.exports = { Recording }
