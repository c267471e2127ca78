# Kriging and co-kriging of the logarithms of the Jura metals with gstat.
#
#   Rscript cokriging.R sites.csv answers.csv costs.csv
#
# sites.csv has Xloc, Yloc, Cd, Ni and Zn at 359 sites. Cd is empty at the 100 sites to predict.
# `python -m benchmarks.cokriging` runs this script and compares the results with emgpr.

suppressPackageStartupMessages(library(gstat))

files <- commandArgs(trailingOnly = TRUE)
sites <- read.csv(files[1])
asked <- sites[is.na(sites$Cd), ]
train <- sites[!is.na(sites$Cd), ]
at <- ~ Xloc + Yloc
metals <- c("Cd", "Ni", "Zn")

data(jura) # gstat's own copy has the same readings.
stopifnot(isTRUE(all.equal(train[metals], prediction.dat[metals], check.attributes = FALSE)))

# Initial models: a nugget and one structure, whose range is 1 km or is fitted to the variogram of
# cadmium, or a nugget and two spherical structures with ranges of 200 m and 1.3 km, which Goovaerts
# (1997) uses for these metals. fit.lmc fits the sills but not the ranges.
ranging_as_cadmium <- function(kind, range) {
  found <- fit.variogram(variogram(log(Cd) ~ 1, at, train), vgm(0.4, kind, range, nugget = 0.1))
  vgm(0.4, kind, found$range[2], nugget = 0.1)
}
starts <- list(
  "spherical" = function() ranging_as_cadmium("Sph", 1),
  "exponential" = function() ranging_as_cadmium("Exp", 0.4),
  "spherical, 1 km" = function() vgm(0.4, "Sph", 1, nugget = 0.1),
  "exponential, 1 km" = function() vgm(0.4, "Exp", 1, nugget = 0.1),
  "two spherical" = function() {
    vgm(0.2, "Sph", 1.3, add.to = vgm(0.2, "Sph", 0.2, nugget = 0.1))
  }
)

# The three metals are variables of one model. Each has its own table of sites.
variables <- function(cd, ni, zn, nmax = Inf) {
  g <- gstat(NULL, "Cd", log(Cd) ~ 1, at, cd, nmax = nmax)
  g <- gstat(g, "Ni", log(Ni) ~ 1, at, ni, nmax = nmax)
  gstat(g, "Zn", log(Zn) ~ 1, at, zn, nmax = nmax)
}

# Cross-variograms are computed from the 259 sites where all three metals are known.
coregionalised <- function(start) {
  g <- variables(train, train, train)
  fit.lmc(variogram(g), g, start, correct.diagonal = 1.01)
}

kriged <- function(start) {
  model <- fit.variogram(variogram(log(Cd) ~ 1, at, train), start)
  answer <- krige(log(Cd) ~ 1, at, train, asked, model, debug.level = 0)
  data.frame(Cd.pred = answer$var1.pred, Cd.var = answer$var1.var)
}

cokriged <- function(start, nmax = Inf, known = TRUE) {
  others <- if (known) sites else train # whether nickel and zinc are known at the sites to predict
  g <- variables(train, others, others, nmax)
  g$model <- coregionalised(start)$model
  predict(g, asked, debug.level = 0)
}

# The best initial model is chosen from the 259 sites alone, by ten-fold cross-validation with
# nickel and zinc known in the fold that is left out.
error_on_training_sites <- function(start) {
  set.seed(1)
  left_out <- gstat.cv(coregionalised(start), nfold = 10, verbose = FALSE, debug.level = 0)
  mean(abs(exp(left_out$Cd.pred) - exp(left_out$observed)))
}

answers <- costs <- list()
run <- function(method, structure, nmax, compute) {
  spent <- system.time(answer <- as.data.frame(compute()))
  for (metal in metals) {
    predicted <- answer[[paste0(metal, ".pred")]]
    if (is.null(predicted)) next
    answers[[length(answers) + 1]] <<- data.frame(
      method = method, structure = structure, nmax = nmax, metal = metal,
      site = seq_len(nrow(asked)), mean = predicted, variance = answer[[paste0(metal, ".var")]]
    )
  }
  costs[[length(costs) + 1]] <<- data.frame(
    method = method, structure = structure, nmax = nmax, seconds = sum(spent[1:2]),
    training_error = NA, training_seconds = NA
  )
}

for (structure in names(starts)) {
  start <- starts[[structure]]
  if (structure %in% c("spherical", "exponential")) {
    run("alone", structure, Inf, function() kriged(start()))
  }
  near <- structure %in% c("exponential", "two spherical")
  for (nmax in if (near) c(20, 40, Inf) else Inf) {
    run("known", structure, nmax, function() cokriged(start(), nmax))
  }
  spent <- system.time(error <- error_on_training_sites(start()))
  costs[[length(costs)]][c("training_error", "training_seconds")] <- c(error, sum(spent[1:2]))
  run("coordinates", structure, Inf, function() cokriged(start(), known = FALSE))
}
write.csv(do.call(rbind, answers), files[2], row.names = FALSE)
write.csv(do.call(rbind, costs), files[3], row.names = FALSE)
