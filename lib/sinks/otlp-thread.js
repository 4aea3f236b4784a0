'use strict'

// Sender thread, if no other thread of longstack's own sends: see otlp.js.

const { parentPort, workerData } = require('node:worker_threads')
const { OtlpClient } = require('./otlp-client')

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)
const client = new OtlpClient(workerData, () => port.close())
if (client.isReady) port.on('message', (message) => client.receive(message))
