'use strict'

// Outputs of the logger: files, which can be rotated, and streams.

const fs = require('node:fs')
const path = require('node:path')
const trace = require('../../..')

const LEVELS = ['debug', 'info', 'warn', 'error']
const CHECK_MS = 1_000 // ms between checks for a renamed file, and between writes of gathered lines
const MAX_WAITING = 1 << 20 // characters that may be queued for the reader of a stream

/** Escapes control characters, so that a text stays on its line, and indents further lines of a stack. */
const oneLine = (text) => text.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1))
const indented = (text) => text.split('\n').map((line) => `    ${oneLine(line)}\n`).join('')

/** Formats lines for people. @param {{ time: Date, level: string, text: string, error?: Error }} entry */
function formatText ({ time, level, text, error }) {
  const stack = error === undefined ? '' : indented(trace.stack(error))
  return `${time.toISOString()} ${level.padEnd(5)} ${oneLine(text)}\n${stack}`
}

/** Formats lines for programs. @type {typeof formatText} */
function formatJson ({ error, ...entry }) {
  const failure = error && { error: String(error), chain: trace.chain(error).map(hopLine) }
  return `${JSON.stringify({ ...entry, ...failure })}\n`
}

/** Formats a hop briefly: the operation and its site. */
function hopLine ({ label, frames: [frame] }) {
  if (frame === undefined) return label
  return `${label} at ${path.basename(frame.fileName ?? '')}:${frame.lineNumber}`
}

/** An output: reports a failure once, and counts lost lines until it is reopened. */
class Output {
  constructor (name, { level = 'info', format = formatText } = {}) {
    const minLevel = LEVELS.indexOf(level)
    Object.assign(this, { name, format, minLevel, failure: undefined, lost: 0, onFailure: () => {} })
  }

  write (line) {
    if (this.failure === undefined) this.accept(line)
    else this.lost++
  }

  fail (error, lines) {
    this.lost += lines
    if (this.failure !== undefined) return
    this.failure = error
    this.onFailure()
  }

  flush () {}
  reopen () {}
}

/**
 * A file. Lines are written immediately, or gathered up to a number of characters; gathered lines are written
 * at exit. A disk that becomes full truncates the line being written.
 */
class FileOutput extends Output {
  constructor (file, { gather = 0, checkEvery = CHECK_MS, ...options } = {}) {
    super(file, options)
    Object.assign(this, { gather, checkEvery, waiting: [], size: 0, checkedAt: Date.now(), fd: undefined })
    this.reopen()
  }

  accept (line) {
    this.waiting.push(line)
    this.size += line.length
    if (this.size > this.gather) this.flush()
  }

  flush () {
    const lines = this.waiting
    if (lines.length === 0 || this.failure !== undefined) return
    this.waiting = []
    this.size = 0
    if (Date.now() - this.checkedAt > this.checkEvery && this.isRenamed()) this.open()
    try {
      const bytes = Buffer.from(lines.join(''))
      for (let written = 0; written < bytes.length;) written += fs.writeSync(this.fd, bytes, written)
    } catch (error) {
      this.fail(error, lines.length)
    }
  }

  isRenamed () {
    this.checkedAt = Date.now()
    try {
      const [now, then] = [fs.statSync(this.name), fs.fstatSync(this.fd)]
      return now.ino !== then.ino || now.dev !== then.dev
    } catch {
      return true
    }
  }

  /** Keeps using the old file if the new one cannot be opened. */
  open () {
    try {
      const fd = fs.openSync(this.name, 'a', 0o600)
      if (this.fd !== undefined) fs.closeSync(this.fd)
      this.fd = fd
      return true
    } catch (error) {
      if (this.fd === undefined) this.fail(error, 0)
      return false
    }
  }

  reopen () {
    this.flush()
    if (this.open()) this.failure = undefined
  }
}

/** Any stream. Its reader may be slow or gone. */
class StreamOutput extends Output {
  constructor (name, stream, options) {
    super(name, options)
    this.stream = stream.on('error', (error) => this.fail(error, 1))
  }

  accept (line) {
    if (this.stream.writableLength > MAX_WAITING) this.lost++
    else this.stream.write(line)
  }
}

module.exports = { LEVELS, CHECK_MS, formatText, formatJson, FileOutput, StreamOutput }
