'use strict'

// About 40 asynchronous resources per request, most of them promises.

const fs = require('node:fs')
const http = require('node:http')
const { serveHttp } = require('../child')

const pause = () => new Promise((resolve) => setTimeout(resolve, 1))
const nextIteration = () => new Promise((resolve) => setImmediate(resolve))

async function load () {
  return fs.promises.readFile(__filename)
}

/** @param {number} value */
async function double (value) {
  await null
  return value * 2
}

/** @param {import('node:http').ServerResponse} response */
async function answer (response) {
  await pause()
  const content = await load()
  await nextIteration()
  const values = await Promise.all([1, 2, 3].map(double))
  response.setHeader('content-type', 'text/plain')
  response.end(`ok ${content.length} ${values.join()}`)
}

serveHttp(http.createServer((request, response) => {
  answer(response).catch((error) => response.writeHead(500).end(String(error)))
}))
