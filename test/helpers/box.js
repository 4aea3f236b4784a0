'use strict'

// Runs test/fixtures/box/service.js with a black box.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { createInterface } = require('node:readline')
const { loadBinding } = require('../../lib/stacks/binding')
const { inherited, node, register, root } = require('./run')
const { folder } = require('./sinks')

const service = path.join(root, 'test', 'fixtures', 'box', 'service.js')
const cli = path.join(root, 'lib', 'cli', 'main.js')

/** whether a process can have a box here */
const hasBoxes = loadBinding().binding !== undefined && process.env.ENGINE !== 'js' && process.platform !== 'win32'

/**
 * @typedef {object} Service
 * @property {import('node:child_process').ChildProcess} child
 * @property {number[]} ports of the main thread, and of its worker
 * @property {string} directory of the box
 * @property {() => string} stderr output so far
 */

/**
 * @param {import('ava').ExecutionContext} t
 * @param {{ args?: string[], flags?: string[], box?: string, directory?: string,
 *   env?: Record<string, string>, enter?: string }} [options] enter: a shell command that becomes the program
 * @returns {Promise<Service>}
 */
async function start (t, { args = [], flags = [], box = '', env, enter = ':', ...others } = {}) {
  const { directory = path.join(folder(t), 'boxes') } = others
  const command = [process.execPath, '-r', register, ...flags, service, ...args]
  const child = spawn('/bin/sh', ['-c', `${enter}; exec "$@"`, 'sh', ...command], {
    env: { ...inherited, LONGSTACK_BOX: `${directory}${box}`, ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => { child.kill('SIGKILL') })
  let stderr = ''
  child.stderr.on('data', (text) => { stderr += text })
  /** @type {number[]} */
  const ports = []
  for await (const line of createInterface(child.stdout)) {
    const [thread, port] = line.split(' ')
    ports[thread === 'main' ? 0 : 1] = Number(port)
    if (ports.filter(Boolean).length === (args.includes('--worker') ? 2 : 1)) break
  }
  return { child, ports, directory, stderr: () => stderr }
}

/**
 * @param {number} port
 * @param {string} url
 * @returns {Promise<number | undefined>} status of the response; undefined if there is none
 */
function ask (port, url) {
  return new Promise((resolve) => {
    // A new connection each time: the server may just have closed a kept one
    http.get({ port, path: url, host: '127.0.0.1', agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    }).on('error', () => resolve(undefined))
  })
}

const isOver = (/** @type {Service} */ { child }) => child.exitCode !== null || child.signalCode !== null

/** @param {Service} service */
async function ended (service) {
  if (!isOver(service)) await once(service.child, 'exit')
}

/** @param {string} directory @returns {Promise<any>} model */
async function report (directory) {
  const { stdout, stderr, code } = await node([cli, directory, '--json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const boxes = (/** @type {string} */ directory) => fs.readdirSync(directory).filter((name) => name.endsWith('.box'))

module.exports = { ask, boxes, cli, ended, hasBoxes, isOver, report, start }
