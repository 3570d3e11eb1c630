"""
A table with text and dates
===========================

One call fits a data frame as it is. The pictures know the names of its columns.
"""

from sketchridge import make_model
from sketchridge.model_plots import plot_effect, plot_influence
from sketchridge.tables.demo import houses

table = houses(200, seed=1).drop("sale")  # its numbers only name the rows
model = make_model(table, "price")
plot_influence(model)

# %%
# What the area does to the price, the other columns being typical, with the interval for the mean
# and the one for a new house:

plot_effect(model, "area")

# %%
# A category:

plot_effect(model, "district")
