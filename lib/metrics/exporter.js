'use strict'

// The option `metrics`: sends the figures of this thread to an OTLP collector, at intervals and when the
// process ends, by the thread that sends (sinks/otlp.js). Keeps nothing alive.

const timers = require('node:timers') // programs replace the global ones
const { runInSlices } = require('../ask/session')
const guard = require('../core/guard')
const { failed } = require('../core/faults')
const { OtlpSink } = require('../sinks/otlp')
const { parseMetrics } = require('../sinks/outputs')
const { warn } = require('../warnings')
const { readMetrics, slices } = require('./figures')

const { stringify } = JSON // programs replace it

class MetricsExporter {
  #sink
  #timer
  #isOver = false

  /** @param {string} option */
  constructor (option) {
    this.option = option
    const { to, intervalMs } = /** @type {NonNullable<ReturnType<typeof parseMetrics>>} */ (
      parseMetrics(option))
    this.#sink = new OtlpSink({ to }, warn, 'metrics')
    this.#timer = timers.setInterval(() => guard.run(this.#export), intervalMs).unref()
    process.on('exit', this.#finish)
    readMetrics('exporter') // counts from now on
  }

  #export = () => {
    const done = (/** @type {import('./figures').Metrics} */ metrics) => this.#sink.write(stringify(metrics))
    runInSlices(slices('exporter'), { done, failed, isOver: () => this.#isOver })
  }

  #finish = () => guard.run(() => {
    try {
      this.#sink.write(stringify(readMetrics('exporter')))
      this.#sink.flush()
    } catch (error) {
      failed(error)
    }
  })

  close () {
    this.#isOver = true
    timers.clearInterval(this.#timer)
    process.off('exit', this.#finish)
    this.#sink.close()
  }
}

module.exports = { MetricsExporter }
