'use strict'

// About 40 asynchronous resources a request, most of them promises.

const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { serveHttp } = require('../child')

const file = path.join(__dirname, 'data.json')

const pause = () => new Promise((resolve) => setTimeout(resolve, 1))
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** @param {number} id */
async function part (id) {
  await null
  return { id, name: await name(id) }
}

/** @param {number} id */
async function name (id) {
  await null
  return `part ${id}`
}

async function answer () {
  await pause()
  const data = JSON.parse(await fs.promises.readFile(file, 'utf8'))
  await turn()
  const parts = await Promise.all([part(1), part(2), part(3)])
  return JSON.stringify({ title: data.title, parts })
}

serveHttp(http.createServer(async (request, response) => {
  try {
    response.end(await answer())
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
}))
