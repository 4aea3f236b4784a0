'use strict'

// The resource of spans, in OpenTelemetry's sense: the service, process and thread that they are of.

const path = require('node:path')
const process = require('node:process')
const { isMainThread } = require('../passing/threads')

/** @type {Record<string, unknown> | undefined} */
let resource

/** @returns {Record<string, unknown>} the same object each time */
function spanResource () {
  resource ??= {
    'service.name': process.env.OTEL_SERVICE_NAME || packageName() || 'node',
    'process.pid': process.pid,
    ...(isMainThread() ? {} : { 'longstack.thread': require('node:worker_threads').threadId })
  }
  return resource
}

/** Returns the name in the package.json nearest to the program. */
function packageName () {
  const fs = require('node:fs')
  let directory = process.argv[1] === undefined ? process.cwd() : path.dirname(process.argv[1])
  for (;;) {
    try {
      const { name } = JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'))
      return typeof name === 'string' ? name : undefined
    } catch {}
    const parent = path.dirname(directory)
    if (parent === directory) return undefined
    directory = parent
  }
}

module.exports = { spanResource }
