'use strict'

// The sinks of spans, as the option `spans` names them; made again when that changes.

const loopIterations = require('../hooks/loop-iterations')

class SpanOutputs {
  #warn
  /** what the sinks were made for @type {unknown} */
  #wanted

  /** @param {(code: string, message: string) => void} warn */
  constructor (warn) {
    this.#warn = warn
    /** @type {ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} */
    this.sinks = undefined
  }

  /** @param {unknown} wanted where spans go, undefined: only to listeners */
  set (wanted) {
    if (wanted === this.#wanted) return
    this.sinks?.close()
    this.sinks = undefined
    this.#wanted = wanted
    if (wanted === undefined) return
    const { parseOutputs } = require('../sinks/outputs')
    const { createSinks } = require('../sinks/sinks')
    this.sinks = createSinks(parseOutputs(wanted), { warn: this.#warn, loopIterations })
  }

  stats () {
    return this.sinks?.stats() ?? { written: 0, waiting: 0, dropped: 0, outputs: [] }
  }
}

module.exports = { SpanOutputs }
