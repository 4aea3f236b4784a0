'use strict'

// A logger with levels and several outputs, any of which may fail.

const { LEVELS, CHECK_MS } = require('./outputs')

/** @param {Output[]} outputs @param {() => Date} [clock] */
function createLogger (outputs, clock = () => new Date()) {
  const hasFailed = (output) => output.failure !== undefined
  let failures = [] // not reported yet, because a line is being written to other outputs
  let isLogging = false

  function log (level, text, error) {
    const entry = { time: clock(), level, text, error }
    const lines = new Map() // calls each format only once
    isLogging = true
    for (const output of outputs) {
      if (LEVELS.indexOf(level) < output.minLevel) continue
      if (!lines.has(output.format)) lines.set(output.format, output.format(entry))
      output.write(lines.get(output.format))
    }
    isLogging = false
    report()
  }

  function report () {
    const outputsToReport = failures
    failures = []
    for (const { name, failure } of outputsToReport) {
      const text = `log output ${name} failed with ${failure.code}: its lines are lost until it is reopened`
      if (outputs.every(hasFailed)) process.stderr.write(`${text}\n`)
      else log('warn', text)
    }
  }

  for (const output of outputs) {
    output.onFailure = () => {
      failures.push(output)
      if (!isLogging) report()
    }
  }

  const logger = {
    flush: () => outputs.forEach((output) => output.flush()),
    reopen () {
      const broken = outputs.filter(hasFailed)
      for (const output of outputs) output.reopen()
      for (const output of broken.filter((output) => !hasFailed(output))) {
        const { name, lost } = output
        output.lost = 0
        log('warn', `log output ${name} is tried again: ${lost} lines were lost`)
      }
    }
  }
  for (const level of LEVELS) logger[level] = (text, error) => log(level, text, error)
  // Started here rather than on demand: otherwise it would belong to a request, which would seem to wait for
  // it.
  setInterval(logger.flush, CHECK_MS).unref()
  for (const output of outputs) if (hasFailed(output)) output.onFailure()
  process.on('exit', logger.flush)
  return logger
}

module.exports = { createLogger }
