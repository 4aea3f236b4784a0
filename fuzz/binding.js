'use strict'

// The functions of the addon with any arguments, in any order: the process does not crash.

const { spawn } = require('node:child_process')
const path = require('node:path')
const { calls } = require('./helpers/binding-arguments')
const { hasBinding } = require('./helpers/binding-calls')
const { check, fc } = require('./helpers/property')

const BATCH = 5
const TIMEOUT_MS = 60_000

/** @param {any} list @returns {Promise<void>} */
function play (list) {
  const file = path.join(__dirname, 'helpers', 'binding-calls.js')
  const args = ['--expose-gc', '--unhandled-rejections=none', file]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'pipe'], timeout: TIMEOUT_MS })
  let stderr = ''
  child.stderr.on('data', (chunk) => { stderr += chunk })
  child.stdin.on('error', () => {}).end(JSON.stringify(list))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`the process ended with ${signal ?? code}\n${stderr.slice(0, 3000)}`))
    })
  })
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'binding',
  async run (settings) {
    if (!hasBinding) {
      settings.log('no addon for this Node')
      return 0
    }
    return check(fc.asyncProperty(calls(), play), settings, BATCH)
  }
}
