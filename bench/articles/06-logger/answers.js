'use strict'

// Prints a server's answers, and its log in several outputs.

const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { createLogger } = require('./logger')
const { LEVELS, formatText, FileOutput, StreamOutput } = require('./outputs')
const { createServer } = require('./server')

/** @param {number} port @param {string} url @returns {Promise<string>} the bytes of the answer */
async function raw (port, url) {
  const socket = net.connect(port, '127.0.0.1')
  socket.setEncoding('latin1').write(`GET ${url} HTTP/1.1\r\nHost: logger\r\nConnection: close\r\n\r\n`)
  let bytes = ''
  for await (const chunk of socket) bytes += chunk
  return bytes
}

async function answers () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'logger-'))
  const clock = () => new Date(0)
  const textOf = (text, error) => error === undefined ? text : `${text}: ${error.message}`
  const brief = ({ time, level, text, error }) => formatText({ time, level, text: textOf(text, error) })
  const files = ['all', 'warnings', 'gathered'].map((name) => path.join(directory, name))
  const logger = createLogger([
    new FileOutput(files[0], { level: 'debug', format: brief, checkEvery: Infinity }), // only reopen() checks
    new FileOutput(files[1], { level: 'warn', format: brief }),
    new FileOutput(files[2], { format: brief, gather: 1e6 }),
    new FileOutput('/dev/full', { format: brief }),
    new StreamOutput('stdout', process.stdout, { format: brief, level: 'error' })
  ], clock)
  for (const level of LEVELS) logger[level](`a ${level}\nof "two" lines \u001b[31m`)
  const server = createServer(logger, 1).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  for (const url of ['/', '/user', '/%0aforged']) process.stdout.write(await raw(port, url), 'latin1')
  server.close()
  fs.renameSync(files[0], `${files[0]}.1`)
  logger.info('still in the old file')
  logger.reopen()
  logger.info('in the new file')
  logger.flush()
  for (const file of [`${files[0]}.1`, ...files]) {
    console.log(`${path.basename(file)}:\n${fs.readFileSync(file, 'utf8')}`)
  }
  fs.rmSync(directory, { recursive: true })
}

module.exports = { answers }
