'use strict'

const { obey } = require('../child')

const CHAINS = 100

/** @param {number} units */
function run (units) {
  return new Promise((resolve) => {
    let left = units
    let chains = CHAINS
    function turn () {
      if (left-- > 0) setTimeout(turn, 1)
      else if (--chains === 0) resolve(undefined)
    }
    for (let i = 0; i < CHAINS; i++) turn()
  })
}

obey({ run })
