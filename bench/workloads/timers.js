'use strict'

const { obey } = require('../child')

const CHAINS = 100

/** @param {number} units */
function run (units) {
  return new Promise((resolve) => {
    let remaining = units
    let chains = CHAINS
    function startTimer () {
      if (remaining-- > 0) setTimeout(startTimer, 1)
      else if (--chains === 0) resolve(undefined)
    }
    for (let i = 0; i < CHAINS; i++) startTimer()
  })
}

obey({ run })
