'use strict'

// A small HTTP server that logs its spans, and its errors with their chains.

const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('../../..')
const { createLogger } = require('./logger')
const { formatJson, FileOutput, StreamOutput } = require('./outputs')

const ms = (value) => `${value.toFixed(1)} ms`

/** Formats a span on one line; its times are decimal strings of nanoseconds. */
function spanLine ({ name, kind, status, startTimeUnixNano, endTimeUnixNano, attributes }) {
  const msOf = (part) => ms(attributes[`longstack.${part}_ms`])
  const end = attributes['longstack.end'] ?? (status.code === 'ERROR' ? 'failed' : 'done')
  const outcome = attributes['http.response.status_code'] ?? end
  const duration = Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6
  const waits = Object.keys(attributes['longstack.wait_ms']).join(', ')
  return `${kind} ${name} ${outcome} in ${ms(duration)}: ` +
    `run ${msOf('run')}, waited ${msOf('waited')}${waits && ` for ${waits}`}, delayed ${msOf('delayed')}`
}

/** @param {ReturnType<typeof createLogger>} logger @param {number} backend a port without a listener */
function createServer (logger, backend) {
  let count = 0
  return http.createServer(async function answer (request, response) {
    response.sendDate = false
    if (request.url === '/user') {
      try {
        response.end(await fs.promises.readFile('/nowhere/user.json'))
      } catch (error) {
        logger.error('no user', error)
        response.writeHead(500).end('no user\n')
      }
    } else if (request.url === '/order') {
      response.writeHead(202).end('it will be sent\n')
      // Without an error listener
      setTimeout(function sendMail () { net.connect(backend, '127.0.0.1') }, 5)
    } else {
      logger.info(`request ${++count}: ${decodeURIComponent(request.url)}`)
      await delay(2)
      response.end('hello\n')
    }
  })
}

/**
 * The child: logs to a directory.
 * @param {string} directory
 * @param {string} backend a port without a listener
 */
function serve (directory, backend) {
  const logger = createLogger([
    new FileOutput(path.join(directory, 'all.log'), { gather: 4096 }),
    new FileOutput(path.join(directory, 'errors.jsonl'), { level: 'error', format: formatJson }),
    new FileOutput('/dev/full', { level: 'info' }), // a disk that is always full
    new StreamOutput('stdout', process.stdout, { level: 'warn' })
  ])
  const server = createServer(logger, Number(backend))
  trace.on('span', (record) => logger.info(spanLine(record)))
  trace.onError((error) => {
    logger.error('escaped', error)
    return true // handled: the server continues
  })
  process.on('SIGUSR2', logger.reopen)
  process.once('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
    process.disconnect()
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}

module.exports = { createServer, serve }
