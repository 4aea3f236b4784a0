'use strict'

// A program without free file descriptors queries their owners: longstack answers from memory.

const test = require('ava')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { register, root } = require('../helpers/run')

const PROGRAM = `
  const fs = require('node:fs')
  async function openFile () { return fs.promises.open(__filename) }
  async function fill () {
    const file = await openFile()
    try {
      for (;;) fs.openSync(__filename)
    } catch (error) {
      const trace = require('longstack')
      console.log(error.code, trace.handles(['FS']).join('\\n'), trace.chain(error).length > 0, trace === require('longstack'))
    }
    return file
  }`

/** @type {Record<string, string>} */
const programs = {
  'the main script': `${PROGRAM}\nfill().then(() => process.exit())`,
  'a worker': `${PROGRAM}
  const { Worker, isMainThread } = require('node:worker_threads')
  if (isMainThread) new Worker(__filename)
  else fill().then(() => process.exit())`,
  'a file in another directory': 'require("./lib/program.js")'
}

const skipped = process.platform === 'win32' || process.env.NODE_V8_COVERAGE !== undefined // sources are read
const run = skipped ? test.skip : test

for (const [name, text] of Object.entries(programs)) {
  run(`require of the package needs no descriptor: ${name}`, (t) => {
    const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-emfile-')))
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    fs.mkdirSync(path.join(folder, 'node_modules'))
    fs.mkdirSync(path.join(folder, 'lib'))
    fs.symlinkSync(root, path.join(folder, 'node_modules', 'longstack'))
    fs.writeFileSync(path.join(folder, 'lib', 'program.js'), programs['the main script'])
    const script = path.join(folder, 'main.js')
    fs.writeFileSync(script, text)
    const { stdout, stderr } = spawnSync('sh',
      ['-c', 'ulimit -n 80; exec "$0" "$@"', process.execPath, '-r', register, script], { cwd: folder, encoding: 'utf8' })
    t.regex(stdout, /^EMFILE file/, stderr)
    t.regex(stdout, /at openFile /)
    if (process.platform === 'linux') t.is(/DESCRIPTOR/.test(stdout), name !== 'a worker')
    t.regex(stdout, /true true\n$/)
  })
}
