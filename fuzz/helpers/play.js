'use strict'

// Runs one target in this process: play.js NAME SETTINGS

const { loadTarget } = require('./targets')

const MAX_CHARACTERS = 10_000 // of a finding

async function main () {
  const [name, settings] = process.argv.slice(2)
  const { run } = loadTarget(name)
  const started = performance.now()
  const log = (/** @type {string} */ line) => console.log(`${name}: ${line}`)
  try {
    const inputs = await run({ ...JSON.parse(settings), log })
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    log(`${inputs} inputs in ${seconds} s, seed ${JSON.parse(settings).seed}, Node ${process.version}`)
    process.exit() // targets may have left handles open
  } catch (error) {
    const text = String(/** @type {any} */ (error)?.message ?? error)
    console.error(`${name}: ${text.slice(0, MAX_CHARACTERS)}`)
    process.exit(1)
  }
}

main()
