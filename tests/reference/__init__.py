"""What every norm is in exact arithmetic: rationals, and roots and powers enclosed as closely as is asked."""
