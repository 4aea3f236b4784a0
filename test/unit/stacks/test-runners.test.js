'use strict'

const test = require('ava')
const { findLauncher } = require('../../../lib/stacks/test-runners')
const { framesOf } = require('../../helpers/contexts')

const launchers = {
  '/usr/lib/node_modules/npm/lib/npm.js': 'npm',
  '/usr/lib/node_modules/npm/node_modules/@npmcli/run-script/lib/run-script.js': 'npm',
  '/home/me/.cache/node/corepack/v1/pnpm/9.1.0/dist/pnpm.cjs': 'pnpm',
  '/home/me/.local/share/pnpm/global/5/.pnpm/pnpm@9.1.0/node_modules/pnpm/dist/pnpm.cjs': 'pnpm',
  '/app/.yarn/releases/yarn-4.1.0.cjs': 'yarn',
  '/usr/lib/node_modules/yarn/lib/cli.js': 'yarn',
  '/app/node_modules/nodemon/lib/monitor/run.js': 'nodemon',
  '/usr/lib/node_modules/pm2/lib/God/ForkMode.js': 'pm2',
  'C:\\Users\\me\\AppData\\Roaming\\npm\\node_modules\\pm2\\lib\\God.js': 'pm2'
}

for (const [file, name] of Object.entries(launchers)) {
  test(`a process of ${file} is started by ${name}`, (t) => {
    t.is(findLauncher(framesOf(`spawn (${file}:1:2)`, 'spawn (node:child_process:1:2)'))?.name, name)
  })
}

test('a package called by a launcher belongs to it', (t) => {
  const frames = framesOf('emit (/app/node_modules/.pnpm/chokidar@3/node_modules/chokidar/index.js:1:2)', 'run (/app/node_modules/nodemon/lib/run.js:1:2)')
  t.is(findLauncher(frames)?.name, 'nodemon')
})

test('a program that calls a launcher is a program', (t) => {
  t.is(findLauncher(framesOf('start (/app/node_modules/pm2/lib/API.js:1:2)', 'deploy (/app/deploy.js:1:2)')), undefined)
  t.is(findLauncher(framesOf('run (/app/pm2/a.js:1:2)')), undefined)
  t.is(findLauncher(framesOf('get (/app/node_modules/pg/index.js:1:2)')), undefined)
  t.is(findLauncher([]), undefined)
})
