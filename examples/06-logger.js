'use strict'

// node examples/06-logger.js
//
// A logger for a server. Each request's span from trace.on('span') becomes a line. An error is logged with
// its asynchronous stack, as text for people and as data for programs; trace.onError logs uncaught errors. A
// file is reopened after rotation.
//
// Based on "Simple Logging in tweeter.js" (Jim Schubert, 2012). Cost of a line: docs/articles.md.

const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('longstack').enable()

const LEVELS = ['debug', 'info', 'warn', 'error']

/** Escapes control characters, so that a client cannot forge a line. @param {string} text */
const oneLine = (text) => text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1))

/** @typedef {{ time: Date, level: string, text: string, error?: Error }} Entry */

/** Formats lines for people. @param {Entry} entry */
function formatText ({ time, level, text, error }) {
  const stack = error === undefined ? [] : trace.stack(error).split('\n')
  const lines = [`${time.toISOString()} ${level.padEnd(5)} ${text}`, ...stack.map((line) => `    ${line}`)]
  return lines.map((line) => `${oneLine(line)}\n`).join('')
}

/** Formats lines for programs. @param {Entry} entry */
function formatJson ({ error, ...entry }) {
  const chain = error && trace.chain(error).map(({ label, frames: [frame] }) => {
    return frame === undefined ? label : `${label} at ${path.basename(frame.fileName)}:${frame.lineNumber}`
  })
  return `${JSON.stringify({ ...entry, error: error && String(error), chain })}\n`
}

/** A file of lines of at least one level. Each line is written at once, so it survives a crash. */
class FileOutput {
  constructor (file, { level, format }) {
    Object.assign(this, { file, format, level: LEVELS.indexOf(level) })
    this.reopen()
  }

  write (line) {
    fs.writeSync(this.descriptor, line)
  }

  /** Opens the file again by its name, after it was renamed. */
  reopen () {
    const descriptor = fs.openSync(this.file, 'a')
    if (this.descriptor !== undefined) fs.closeSync(this.descriptor)
    this.descriptor = descriptor
  }
}

/** @param {FileOutput[]} outputs */
function createLogger (outputs) {
  const log = (level, text, error) => {
    const entry = { time: new Date(), level, text, error }
    const isWanted = (output) => LEVELS.indexOf(level) >= output.level
    for (const output of outputs.filter(isWanted)) output.write(output.format(entry))
  }
  return Object.fromEntries(LEVELS.map((level) => [level, (text, error) => log(level, text, error)]))
}

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'logger-'))
const allLines = new FileOutput(path.join(directory, 'all.log'), { level: 'info', format: formatText })
const errors = new FileOutput(path.join(directory, 'errors.jsonl'), { level: 'error', format: formatJson })
const logger = createLogger([allLines, errors])

trace.on('span', ({ name, kind, attributes }) => {
  const ms = (part) => `${attributes[`longstack.${part}_ms`].toFixed(1)} ms`
  logger.info(`${kind} ${name}: run ${ms('run')}, waited ${ms('waited')}, delayed ${ms('delayed')}`)
})

trace.onError((error) => {
  logger.error('escaped', error)
  return true // handled: the server continues
})

const server = http.createServer(async function answer (request, response) {
  if (request.url === '/user') {
    try {
      response.end(await fs.promises.readFile('/nowhere/user.json'))
    } catch (error) {
      logger.error('no user', error)
      response.writeHead(500).end()
    }
  } else {
    response.writeHead(202).end()
    setTimeout(function sendMail () { net.connect(1, '127.0.0.1') }, 5) // nothing listens for its 'error'
  }
})

/** Waits until a file contains a text. @param {string} file @param {RegExp} text */
async function contains (file, text) {
  while (!text.test(fs.readFileSync(file, 'utf8'))) await delay(5)
}

server.listen(0, '127.0.0.1', async () => {
  const address = { port: server.address().port, host: '127.0.0.1', agent: false }
  const get = (url) => once(http.get({ ...address, path: url }), 'response')
  await get('/user')
  await contains(allLines.file, /SERVER GET \/user/)
  fs.renameSync(allLines.file, `${allLines.file}.1`)
  allLines.reopen()
  await get('/order')
  await contains(errors.file, /escaped/)
  server.close()
  for (const file of [`${allLines.file}.1`, allLines.file, errors.file]) {
    console.log(`${path.basename(file)}:\n${fs.readFileSync(file, 'utf8')}`)
  }
  fs.rmSync(directory, { recursive: true })
})
