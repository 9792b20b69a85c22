"cd2cd86ab02cb61d"
